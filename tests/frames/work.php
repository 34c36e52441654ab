<?php
/* Work whose calls are known: work.php.calls lists them.
 *
 * usage: work.php SECONDS [stress]     works for so many seconds of CPU time; stress: with forked children and garbage
 *                                      collection besides
 * Recursion, generators that delegate, objects with destructors, callbacks from C, exceptions, closures, fibers, eval.
 */
function three($n)
{
    $sum = 0;
    for ($i = 0; $i < 3 * $n; $i++)
        $sum += $i % 7;
    return $sum;
}

function one($n)
{
    $sum = 0;
    for ($i = 0; $i < $n; $i++)
        $sum += $i % 7;
    return $sum;
}

function recurse($n)
{
    return $n < 2 ? $n : recurse($n - 1) + recurse($n - 2);
}

function generate($n)
{
    for ($i = 0; $i < $n; $i++)
        yield one(3);
}

function delegate($n)
{
    yield from generate($n);
}

function generators()
{
    foreach (delegate(1000) as $x)
        ;
}

class Point
{
    public $x;

    public function __construct($x)
    {
        $this->x = $x;
    }

    public function get()
    {
        return $this->x;
    }

    public function __destruct()
    {
        $this->x = one(2);
    }
}

function objects($n)
{
    for ($i = 0; $i < $n; $i++) {
        $point = new Point($i);
        $point->get();
    }
}

function compare($a, $b)
{
    return $a <=> $b;
}

function callbacks()
{
    $list = range(500, 1);
    usort($list, 'compare');
    array_map(fn($x) => one(10), range(1, 100));
    preg_replace_callback('/./', fn($match) => strtoupper($match[0]), str_repeat('abc', 100));
}

function throws($depth)
{
    if ($depth == 0)
        throw new Exception('thrown');
    throws($depth - 1);
}

function exceptions($n)
{
    for ($i = 0; $i < $n; $i++) {
        try {
            throws(20);
        } catch (Exception $e) {
            one(3);
        }
    }
}

function fibers($n)
{
    $fiber = new Fiber(function () use ($n) {
        for ($i = 0; $i < $n; $i++) {
            three(5);
            Fiber::suspend();
        }
    });
    $fiber->start();
    while (!$fiber->isTerminated())
        $fiber->resume();
}

function evaluated($n)
{
    for ($i = 0; $i < $n; $i++)
        eval('one(5);');
}

function cpu_time()
{
    $usage = getrusage();
    return $usage['ru_utime.tv_sec'] + $usage['ru_utime.tv_usec'] / 1e6 + $usage['ru_stime.tv_sec'] + $usage['ru_stime.tv_usec'] / 1e6;
}

function fork()
{
    $child = pcntl_fork();
    if (!$child) {
        recurse(15);
        generators();
        posix_kill(getmypid(), SIGKILL); /* neither destructors nor output */
    }
    pcntl_waitpid($child, $status);
    if (pcntl_wtermsig($status) != SIGKILL)
        exit("work.php: a forked child has crashed\n");
}

function cycles()
{
    for ($i = 0; $i < 100; $i++) {
        $one = new stdClass;
        $one->other = new stdClass;
        $one->other->other = $one;
    }
    gc_collect_cycles();
}

for ($round = 0; cpu_time() < $argv[1]; $round++) {
    if (isset($argv[2])) {
        cycles();
        if ($round % 20 == 0)
            fork();
    }
    three(20000);
    one(20000);
    recurse(15);
    generators();
    objects(2000);
    callbacks();
    exceptions(50);
    fibers(200);
    evaluated(20);
}
echo "done\n";
