// Work of all kinds, for samples at any moment: see Work.java.calls.
//
// usage: Work SECONDS [stress]     of CPU time, of all threads; prints: done
// stress: for so many seconds, class loaders are made and unloaded, garbage and deep exceptions all the time, in four threads besides.
import com.sun.management.OperatingSystemMXBean;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.IntBinaryOperator;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.CRC32;

public class Work {
	static volatile long sum;
	static long end;

	interface Shape {
		double area(double x);
	}

	static class Square implements Shape {
		public double area(double x) { return side(x) * side(x); }

		double side(double x) { return x + 1; }
	}

	static class Circle implements Shape {
		public double area(double x) { return 3.14 * x * x; }
	}

	static class Triangle implements Shape {
		public double area(double x) { return Math.sin(x) * x / 2; }
	}

	static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

	static int deep(int n) { return n == 0 ? fib(12) : 1 + deep(n - 1); }

	static void shapes() {
		Shape[] shapes = {new Square(), new Circle(), new Triangle()};
		double total = 0;

		for (int i = 0; i < 60_000; i++)
			total += shapes[i % 3].area(i);
		sum += (long) total;
	}

	static int compare(Integer a, Integer b) { return Integer.compare(a, b); }

	static void sorting() {
		Integer[] numbers = new Integer[8_000];
		Random random = new Random(1);

		for (int i = 0; i < numbers.length; i++)
			numbers[i] = random.nextInt();
		Arrays.sort(numbers, Work::compare);
		sum += numbers[0];
	}

	static boolean isThird(int n) { return n % 3 == 0; }

	static String text(int n) { return "s" + n; }

	static void streams() {
		sum += IntStream.range(0, 6_000).filter(Work::isThird).mapToObj(Work::text)
			.collect(Collectors.groupingBy(String::length)).size();
		sum += IntStream.range(0, 20_000).parallel().filter(Work::isThird).sum();
	}

	static void strings() {
		StringBuilder text = new StringBuilder();

		for (int i = 0; i < 5_000; i++)
			text.append(i).append(',');
		sum += text.toString().replace("1", "x").toUpperCase().hashCode();
	}

	static void thrower(int n) {
		if (n == 0)
			throw new IllegalStateException("x");
		thrower(n - 1);
	}

	static void catching(int n) {
		try {
			thrower(n);
		} catch (IllegalStateException e) {
			sum += e.getMessage().length();
		}
	}

	static void exceptions() {
		for (int i = 0; i < 300; i++)
			catching(i % 40);
	}

	public static int reflected(int n) { return fib(n); }

	static void reflection() {
		try {
			Method method = Work.class.getDeclaredMethod("reflected", int.class);

			for (int i = 0; i < 1_000; i++)
				sum += (Integer) method.invoke(null, 4);
		} catch (ReflectiveOperationException e) {
			throw new RuntimeException(e);
		}
	}

	static void natives() {
		byte[] from = new byte[100_000], to = new byte[100_000];
		CRC32 crc = new CRC32();

		for (int i = 0; i < 20; i++) {
			System.arraycopy(from, i, to, 0, 90_000);
			crc.update(to);
			Arrays.fill(from, i, 90_000, (byte) i);
			from = from.clone();
		}
		sum += crc.getValue() + System.identityHashCode(crc);
		for (int i = 0; i < 200; i++)
			sum += System.nanoTime() & 1;
	}

	static long locked(long n) {
		synchronized (Work.class) {
			return n * 31;
		}
	}

	static void locks() {
		long n = 0;

		for (int i = 0; i < 20_000; i++)
			n += locked(i);
		sum += n;
	}

	static int added(int a, int b) { return a + b; }

	static void maps() {
		Map<Integer, Integer> map = new HashMap<>();
		IntBinaryOperator add = Work::added;

		for (int i = 0; i < 10_000; i++)
			map.merge(i % 977, i, add::applyAsInt);
		sum += map.size();
	}

	static void garbage() {
		List<byte[]> list = new ArrayList<>();

		for (int i = 0; i < 3_000; i++) {
			list.add(new byte[1_000]);
			if (list.size() > 500)
				list.clear();
		}
		sum += list.size();
	}

	static void inOther() {
		sum += fib(16);
		sorting();
	}

	static void inVirtual() {
		for (int i = 0; i < 4; i++) {
			sum += deep(10);
			Thread.yield();
		}
	}

	static void threads() {
		try {
			Thread thread = new Thread(Work::inOther);

			thread.start();
			thread.join();
			try {
				Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
				Thread[] all = new Thread[20];

				for (int i = 0; i < all.length; i++)
					all[i] = (Thread) start.invoke(null, (Runnable) Work::inVirtual);
				for (Thread one : all)
					one.join();
			} catch (NoSuchMethodException e) {
				return; /* before JDK 21 */
			}
		} catch (InterruptedException | ReflectiveOperationException e) {
			throw new RuntimeException(e);
		}
	}

	/* A class of this name in each loader. */
	public static class Loaded implements Supplier<Integer> {
		public Integer get() { return spin(3_000); }

		int spin(int n) {
			int x = 1;

			for (int i = 0; i < n; i++)
				x = x * 31 + i;
			return x;
		}
	}

	static class Loader extends ClassLoader {
		final byte[] code;

		Loader(byte[] code) {
			super(null);
			this.code = code;
		}

		@Override
		protected Class<?> findClass(String name) {
			return defineClass(name, code, 0, code.length);
		}
	}

	static byte[] loaded;

	static void loaders() {
		try {
			if (loaded == null) {
				try (InputStream in = Work.class.getResourceAsStream("Work$Loaded.class")) {
					ByteArrayOutputStream out = new ByteArrayOutputStream();

					in.transferTo(out);
					loaded = out.toByteArray();
				}
			}
			for (int i = 0; i < 20; i++) {
				Supplier<?> made = (Supplier<?>) new Loader(loaded).loadClass("Work$Loaded").getConstructor().newInstance();

				for (int k = 0; k < 10; k++)
					sum += (Integer) made.get();
			}
		} catch (IOException | ReflectiveOperationException e) {
			throw new RuntimeException(e);
		}
	}

	static void round() {
		sum += deep(60);
		shapes();
		sorting();
		streams();
		strings();
		exceptions();
		reflection();
		natives();
		locks();
		maps();
		garbage();
		threads();
		loaders();
	}

	static void churn() {
		while (System.nanoTime() < end) {
			loaders();
			garbage();
			exceptions();
			sum += deep(200);
		}
	}

	public static void main(String[] arguments) throws InterruptedException {
		Thread[] all = new Thread[arguments.length > 1 ? 4 : 0];

		end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);
		for (int i = 0; i < all.length; i++) {
			all[i] = new Thread(Work::churn);
			all[i].start();
		}
		if (all.length == 0) {
			OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
			long used = system.getProcessCpuTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);

			while (system.getProcessCpuTime() < used)
				round();
		}
		for (int i = 0; all.length > 0 && System.nanoTime() < end; i++) {
			round();
			if (i % 8 == 0)
				System.gc();
		}
		for (Thread thread : all)
			thread.join();
		System.out.println("done");
	}
}
