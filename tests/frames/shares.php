<?php
/* Two functions, of which one takes three times as long as the other: shares.php ROUNDS. */
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
    for ($i = 0; $i < 1 * $n; $i++)
        $sum += $i % 7;
    return $sum;
}

function work($rounds)
{
    for ($round = 0; $round < $rounds; $round++) {
        $n = 5000 + $round * 7919 % 10000; /* of no length that a sampling period could follow */
        three($n);
        one($n);
    }
}

work($argv[1]);
echo "done\n";
