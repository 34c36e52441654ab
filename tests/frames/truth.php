<?php
/* As truth.py, for PHP: before each page fault that it causes on purpose, it writes down its debug_backtrace().
 *
 * usage: truth.php FILE      writes the stacks, JSON: [[function, file, line], innermost first]
 */
class Stacks
{
    public static array $all = [];
    public static $libc, $pages, $next = 0;
}
Stacks::$libc = FFI::cdef('void *mmap(void *, size_t, int, int, int, long);');
Stacks::$pages = Stacks::$libc->cast('char *', Stacks::$libc->mmap(null, 4096 * 4096, 3, 0x22, -1, 0));

function note(array $trace): int
{
    $stack = [['here', __FILE__, HERE]];
    /* An entry has the function that was called, and the place of the call, which is in the next entry's function. */
    for ($i = 0; $i < count($trace); $i++) {
        $of = $trace[$i + 1] ?? null;
        $name = $of === null ? '{main}' : (isset($of['class']) ? $of['class'] . '::' : '') . $of['function'];
        if (in_array($name, ['include', 'require', 'include_once', 'require_once', 'eval']))
            $name = '{main}';
        $name = explode("\0", $name)[0];
        $stack[] = isset($trace[$i]['file']) ? [$name, $trace[$i]['file'], $trace[$i]['line']]
                                             : [$name, '[internal function]', 0];
    }
    Stacks::$all[] = $stack;
    Stacks::$next += 4096;
    return Stacks::$next;
}

const HERE = __LINE__ + 3;
function here()
{
    Stacks::$pages[note(debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS))] = 'x';
}

function recurse(int $n): int
{
    if ($n == 0) {
        here();
        return 0;
    }
    return 1 + recurse($n - 1);
}

function generate(int $n)
{
    for ($i = 0; $i < $n; $i++) {
        here();
        yield $i;
    }
}

function delegate(int $n)
{
    yield from generate($n);
    here();
}

function twice(int $n)
{
    yield from delegate($n);
}

interface Shape
{
    public function area(): int;
}

trait Counts
{
    public function count(): int
    {
        here();
        return 1;
    }
}

abstract class Base implements Shape
{
    public function __construct()
    {
        here();
    }

    public function __destruct()
    {
        here();
    }

    public function __call($name, $arguments)
    {
        here();
    }

    public static function __callStatic($name, $arguments)
    {
        here();
    }

    public function __get($name)
    {
        here();
        return 1;
    }

    public function __toString(): string
    {
        here();
        return 'base';
    }
}

class Square extends Base implements IteratorAggregate, ArrayAccess
{
    use Counts;

    public function area(): int
    {
        here();
        return 1;
    }

    public static function make(): static
    {
        here();
        return new static();
    }

    public function getIterator(): Iterator
    {
        here();
        yield 1;
        here();
    }

    public function offsetExists($at): bool
    {
        here();
        return true;
    }

    public function offsetGet($at): mixed
    {
        here();
        return 1;
    }

    public function offsetSet($at, $to): void
    {
        here();
    }

    public function offsetUnset($at): void
    {
        here();
    }
}

function größe()
{
    here();
}

function raises()
{
    try {
        here();
        throw new Exception('x');
    } catch (Exception $e) {
        here();
    } finally {
        here();
    }
}

function callbacks()
{
    $list = [3, 1, 2];
    usort($list, function ($a, $b) {
        here();
        return $a <=> $b;
    });
    array_map(fn($x) => here(), $list);
    array_filter($list, 'callback');
    preg_replace_callback('/a/', function ($match) {
        here();
        return 'b';
    }, 'banana');
    call_user_func_array([new Square(), 'area'], []);
    call_user_func('Square::make');
    $first = here(...);
    $first();
    array_walk($list, static function ($x) {
        array_map(function ($y) {
            here();
        }, [1, 2]);
    });
    iterator_to_array(generate(2));
    $made = (function () {
        return function () {
            here();
        };
    })();
    $made();
}

function callback($x)
{
    here();
    return true;
}

function over_lines($a,
                    $b = 0)
{
    return ($a .
            here() .
            $b);
}

function evaluated()
{
    eval('here();');
    eval("\n\n\nhere();");
    for ($i = 0; $i < 40; $i++) {
        $made = eval(str_repeat("\n", $i % 7) . "return function () { here(); };");
        $made();
        unset($made);
    }
    $file = tempnam(sys_get_temp_dir(), 'truth') . '.php';
    file_put_contents($file, "<?php\n\nfunction included_" . count(Stacks::$all) . "() {\n here();\n}\nhere();\n" .
                             'included_' . count(Stacks::$all) . "();\n");
    include $file;
    unlink($file);
    unlink(substr($file, 0, -4));
}

function fibers()
{
    $fiber = new Fiber(function () {
        here();
        Fiber::suspend(1);
        here();
    });
    $fiber->start();
    here();
    $fiber->resume();
}

function everything()
{
    here();
    recurse(5);
    recurse(60);
    foreach (generate(3) as $x)
        here();
    foreach (delegate(3) as $x)
        ;
    foreach (twice(2) as $x)
        ;
    $square = new Square();
    $square->area();
    $square->count();
    $square->nothing();
    Square::nothing();
    $square->missing;
    "$square";
    foreach ($square as $x)
        ;
    isset($square[1]);
    $square[1];
    $square[1] = 2;
    unset($square[1]);
    unset($square);
    new class extends Base {
        public function area(): int
        {
            return 0;
        }
    };
    größe();
    raises();
    callbacks();
    over_lines(
        1,
        2
    );
    evaluated();
    fibers();
}

for ($i = 0; $i < 6; $i++)
    everything();
file_put_contents($argv[1], json_encode(Stacks::$all));
