/* Work for a Java machine: compiled code, traps it makes itself (null pointers, safepoints, deep stacks), threads,
 * garbage, children. */
import java.io.*;
import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;

public class Guest {
    static long numbers(int n) {
        long sum = 0;
        for (int i = 1; i < n; i++)
            sum = (sum * 31 + (i % 7 != 0 ? i : i / 3)) % 1000003;
        return sum;
    }

    static int depth(int n) {
        return depth(n + 1) + 1;
    }

    static int nulls(int n) {
        int caught = 0;
        String[] texts = {"a", null, "bb"};
        for (int i = 0; i < n; i++) {
            try {
                caught += texts[i % 3].length() > 5 ? 1 : 0;
            } catch (NullPointerException e) {
                caught++;
            }
        }
        return caught;
    }

    static int garbage(int n) {
        List<byte[]> kept = new ArrayList<>();
        int bytes = 0;
        for (int i = 0; i < n; i++) {
            byte[] block = new byte[i % 4000];
            bytes += block.length;
            if (i % 100 == 0)
                kept.add(block);
        }
        return bytes + kept.size();
    }

    static String child(String... words) throws Exception {
        Process p = new ProcessBuilder(words).redirectErrorStream(true).start();
        String text = new BufferedReader(new InputStreamReader(p.getInputStream())).lines().collect(Collectors.joining(" "));
        return text + " " + p.waitFor();
    }

    public static void main(String[] args) throws Exception {
        System.out.println("numbers " + numbers(30_000_000));
        System.out.println("nulls " + nulls(3_000_000));
        try {
            depth(0);
        } catch (StackOverflowError e) {
            System.out.println("overflow");
        }
        System.out.println("garbage " + garbage(1_000_000));
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<String>> results = new ArrayList<>();
        for (int i = 0; i < 16; i++) {
            int n = i;
            results.add(pool.submit(() -> numbers(1_000_000 + n) + " " + nulls(100_000) + " " + garbage(50_000)));
        }
        for (Future<String> result : results)
            System.out.println("thread " + result.get());
        pool.shutdown();
        System.out.println("child " + child("sh", "-c", "echo below; exit 3"));
        try {
            child("/nowhere/nothing");
        } catch (IOException e) {
            System.out.println("missing");
        }
        MessageDigest md = MessageDigest.getInstance("SHA-256");
        System.out.println("parallel " + IntStream.range(0, 2_000_000).parallel().mapToLong(i -> i % 13).sum());
        for (int i = 0; i < 20000; i++)
            md.update(("text " + i).getBytes());
        System.out.println("digest " + Arrays.hashCode(md.digest()));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        Thread.sleep(20);
        System.exit(4);
    }
}
