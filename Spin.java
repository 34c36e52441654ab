public class Spin {
	public static void main(String[] args) {
		long t = 0;
		do
			for (long i = 0; i < 500000000L; i++)
				t += i % 7 ^ t << 1;
		while (args.length > 0 && args[0].equals("on"));
		System.exit(t == 1 ? 1 : 0);
	}
}
