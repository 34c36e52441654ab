"""Ten benchmarks of cattrs, for tests/gate/suite-pytest."""
from enum import Enum
from typing import Dict, List, Optional, Tuple

import attr
import pytest
from cattrs import BaseConverter, Converter


class Colour(Enum):
    RED = 'red'
    BLUE = 'blue'


@attr.define
class Point:
    x: int
    y: int
    z: float


@attr.define
class Shape:
    name: str
    points: List[Point]
    colour: Colour
    tags: Dict[str, int]
    parent: Optional[str] = None


SHAPE = Shape('a', [Point(i, i * 2, i / 3) for i in range(20)], Colour.RED, {str(i): i for i in range(10)})
RAW = {'name': 'a', 'points': [{'x': i, 'y': 2 * i, 'z': i / 3} for i in range(20)], 'colour': 'red',
       'tags': {str(i): i for i in range(10)}, 'parent': None}
CONVERTERS = {'base': BaseConverter(), 'generated': Converter()}


@pytest.mark.parametrize('kind', CONVERTERS)
def test_unstructure(benchmark, kind):
    assert benchmark(CONVERTERS[kind].unstructure, SHAPE)['colour'] == 'red'


@pytest.mark.parametrize('kind', CONVERTERS)
def test_structure(benchmark, kind):
    assert benchmark(CONVERTERS[kind].structure, RAW, Shape) == SHAPE


@pytest.mark.parametrize('kind', CONVERTERS)
def test_list_of_int(benchmark, kind):
    benchmark(CONVERTERS[kind].structure, [str(i) for i in range(100)], List[int])


def test_dict(benchmark):
    benchmark(CONVERTERS['base'].structure, {i: str(i) for i in range(50)}, Dict[str, int])


def test_tuple(benchmark):
    benchmark(CONVERTERS['base'].structure, [1, '2', 3.5], Tuple[int, str, float])


def test_enum(benchmark):
    benchmark(CONVERTERS['base'].structure, ['red', 'blue'] * 20, List[Colour])


def test_fromtuple(benchmark):
    benchmark(lambda: [CONVERTERS['base'].structure_attrs_fromtuple((1, 2, 3.5), Point) for _ in range(10)])
