/**
 * Loads all of kubeling, calls the runtime once, stays idle for two seconds, and prints the time
 * until the first CRI response and the resident memory. usage: idle.ts SOCKET
 */
import '../src/cli/index.ts';
import '../src/cli/up/up.ts';
import '../src/cli/down.ts';
import '../src/cli/run/run.ts';
import '../src/cli/status.ts';
import '../src/cli/doctor/index.ts';
import '../src/config/index.ts';
import '../src/containerd/index.ts';
import '../src/kubelet/index.ts';
import '../test/simulator/index.ts';
import { createCriClient, wireTransport } from '../src/cri/index.ts';
import { realClock, systemRandom } from '../src/lib/index.ts';

const clock = realClock();
const signal = new AbortController().signal;
const transport = wireTransport({ endpoint: process.argv[2] ?? '', clock, random: systemRandom() });
const cri = createCriClient({ transport, clock });
await cri.checkVersion(signal);
const firstAnswerMs = performance.now();
await clock.sleep(2_000, signal);
console.log(JSON.stringify({ firstAnswerMs, residentMb: process.memoryUsage.rss() / 2 ** 20 }));
process.exit(0);
