// Virtual threads that give up their turn 10 to 39 calls deep, again and again, and then return: their callers come back from the heap.
//
// usage: Yields THREADS SECONDS     of CPU time, of all threads
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;

public class Yields {
	static volatile int sink;
	static volatile boolean isOver;

	static int work(int n) {
		int sum = 0;

		for (int i = 0; i < n; i++)
			sum = sum * 31 + i;
		return sum;
	}

	static int down(int n) {
		if (n == 0) {
			Thread.yield();
			return work(300);
		}
		return down(n - 1) + (n % 4 == 0 ? work(50) : 1);
	}

	static void yielding(int depth) {
		while (!isOver)
			sink += down(depth);
	}

	public static void main(String[] arguments) throws Exception {
		Thread[] threads = new Thread[Integer.parseInt(arguments[0])];
		Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);

		OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
		long end = system.getProcessCpuTime() + (long) (1e9 * Double.parseDouble(arguments[1]));

		for (int i = 0; i < threads.length; i++) {
			int depth = 10 + i % 30;

			threads[i] = (Thread) start.invoke(null, (Runnable) () -> yielding(depth));
		}
		while (system.getProcessCpuTime() < end)
			Thread.sleep(10);
		isOver = true;
		for (Thread thread : threads)
			thread.join();
		System.out.println("done");
	}
}
