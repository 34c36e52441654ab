// A child process, and a thread; both print the same line.
//
// usage: Jobs                       it starts itself once more, with "child"
//        Jobs deep DEPTH SECONDS    works so many frames deep instead, SECONDS of CPU time
import java.lang.management.ManagementFactory;

public class Jobs {
	static long cpuNs() { return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime(); }

	static int spin(long ms) {
		long end = cpuNs() + ms * 1_000_000;
		int sum = 0;

		while (cpuNs() < end)
			for (int i = 0; i < 100_000; i++)
				sum = sum * 31 + i;
		return sum;
	}

	static void inChild() {
		System.out.println(spin(400) == 1 ? "" : "worked");
	}

	static void inThread() {
		System.out.println(spin(400) == 1 ? "" : "worked");
	}

	static int deep(int n, long ms) { return n > 2 ? deep(n - 1, ms) + 1 : spin(ms); }

	public static void main(String[] arguments) throws Exception {
		if (arguments.length > 2) {
			deep(Integer.parseInt(arguments[1]) - 1, (long) (1000 * Double.parseDouble(arguments[2])));
			return;
		}
		if (arguments.length > 0) {
			inChild();
			return;
		}
		Thread thread = new Thread(Jobs::inThread);
		thread.start();
		thread.join();
		new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-cp", System.getProperty("java.class.path"), "Jobs", "child")
			.inheritIO().start().waitFor();
	}
}
