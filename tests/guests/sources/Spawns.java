/* Starts 1,000 programs, by the way that Java prefers (a helper, by posix_spawn) and by vfork. */
import java.util.*;

public class Spawns {
    public static void main(String[] args) throws Exception {
        Map<Integer, Integer> ended = new TreeMap<>();
        for (int i = 0; i < 1000; i++)
            ended.merge(new ProcessBuilder("true").start().waitFor(), 1, Integer::sum);
        System.out.println(ended);
        System.exit(5);
    }
}
