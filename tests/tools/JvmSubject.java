// SPDX-License-Identifier: MIT
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/** 200 threads with garbage, direct buffers and compressors; 64 of these are kept. Prints a checksum, ends with its input. */
public class JvmSubject {
	static final List<Deflater> kept = new ArrayList<>();

	static byte[] text(int seed, int length) {
		byte[] b = new byte[length];
		int x = seed * 2654435 + 1;
		for (int i = 0; i < length; i++) {
			x = x * 1103515245 + 12345;
			b[i] = (byte) ('a' + (x >>> 16) % 7);
		}
		return b;
	}

	static long work(int me) {
		CRC32 crc = new CRC32();
		for (int i = 0; i < 20; i++) {
			byte[] in = text(me * 100 + i, 3000 + 10 * i), out = new byte[8000];
			Deflater d = new Deflater(1 + i % 9);
			d.setInput(in);
			d.finish();
			int n = d.deflate(out);
			d.end();
			ByteBuffer direct = ByteBuffer.allocateDirect(n + 1000 * (i % 5));
			direct.put(out, 0, n);
			StringBuilder s = new StringBuilder();
			for (int k = 0; k < 200; k++)
				s.append(k * me).append(' ');
			crc.update(s.toString().getBytes());
			crc.update(out, 0, n);
		}
		return crc.getValue();
	}

	public static void main(String[] args) throws Exception {
		long[] sums = new long[200];
		Thread[] threads = new Thread[200];
		for (int i = 0; i < 200; i++) {
			int me = i;
			threads[i] = new Thread(() -> sums[me] = work(me));
			threads[i].start();
		}
		long sum = 0;
		for (int i = 0; i < 200; i++) {
			threads[i].join();
			sum = sum * 31 + sums[i];
		}
		for (int i = 0; i < 64; i++)
			kept.add(new Deflater());
		System.gc();
		System.out.println("sum " + sum + " kept " + kept.size());
		System.out.flush();
		while (System.in.read() >= 0)
			;
	}
}
