<?php
/* What PHP programs do besides computing.
 *
 * usage: jobs.php children        a forked child, a program that is executed, and one that replaces it
 *        jobs.php blocks          sleeps, waits for a child, reads from a pipe: 0.2 s each, the first two as phases
 *        jobs.php made N          makes, calls and frees N functions, each for some 0.5 ms
 *        jobs.php deep N SECONDS  works N frames deep, for so many seconds of CPU time
 */
function burn($n)
{
    $sum = 0;
    for ($i = 0; $i < $n; $i++)
        $sum += $i % 7;
    return $sum;
}

function in_child()
{
    burn(4000000);
}

function in_program()
{
    burn(4000000);
}

function children()
{
    $child = pcntl_fork();
    if (!$child) {
        in_child();
        pcntl_exec(PHP_BINARY, [__FILE__, 'program']);
    }
    pcntl_waitpid($child, $status);
    passthru(PHP_BINARY . ' ' . __FILE__ . ' program');
}

function sleeps()
{
    usleep(200000);
}

function waits()
{
    system('until grep -q "^State:.S" /proc/$PPID/status; do :; done; sleep 0.2'); /* once this process waits */
}

function reads($from)
{
    fgets($from, 2);
}

function writes($to, $reader)
{
    while (!strpos(file_get_contents("/proc/$reader/stat"), ') S ')) /* until it waits */
        usleep(1000);
    usleep(200000);
    fwrite($to, 'x');
}

function blocks()
{
    $library = FFI::cdef('int csink_phase_begin(const char *); int csink_phase_end(void);');
    $library->csink_phase_begin('sleeping');
    sleeps();
    $library->csink_phase_end();
    $library->csink_phase_begin('waiting');
    waits();
    $library->csink_phase_end();
    $ends = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $reader = getmypid();
    if (!pcntl_fork()) {
        writes($ends[1], $reader);
        exit;
    }
    reads($ends[0]);
}

/* Only a function without a name can be freed: its namespace identifies it. */
function source($k)
{
    return "namespace f_$k;" . str_repeat("\n", $k % 7) . 'return function ($n) {' . "\n\$sum = 0;\n" . str_repeat("\n", $k % 5)
        . "for (\$i = 0; \$i < \$n; \$i++)\n\$sum += \$i % 7;\nreturn \$sum;\n};";
}

function made($n)
{
    for ($k = 0; $k < $n; $k++) {
        /* The line of eval() is in the name of the evaluated file. */
        if ($k % 3 == 0)
            $function = eval(source($k));
        elseif ($k % 3 == 1)
            $function = eval(source($k));
        else
            $function = eval(source($k));
        $function(20000);
        unset($function);
    }
}

function works($seconds)
{
    do {
        burn(2000);
        $usage = getrusage();
    } while ($usage['ru_utime.tv_sec'] + $usage['ru_utime.tv_usec'] / 1e6 < $seconds);
}

function deep($n, $seconds)
{
    if ($n > 1)
        deep($n - 1, $seconds);
    else
        works($seconds);
}

switch ($argv[1]) {
case 'children': children(); break;
case 'program': in_program(); break;
case 'blocks': blocks(); break;
case 'made': made($argv[2]); break;
case 'deep': deep($argv[2] - 3, $argv[3]); break; /* {main}, works() and burn() are frames, too */
}
