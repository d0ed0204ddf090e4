/**
 * Measures a container that logs as fast as the runtime accepts it for a minute: the maximum size
 * of its log files, whether a follower receives every line, and how long the event loop is blocked.
 * Prints the targets next to the results; asserts nothing.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { InProcessNode } from '../test/in-process-node.ts';
import { print } from './figures.ts';
import { floodScript, followFlood, SizeWatch } from './log-flood.ts';

const seconds = Number(process.argv[2] ?? 60);
const mebibyte = 2 ** 20;
const capMebibytes = 50;
const resolutionMs = 10;

await using node = await InProcessNode.open();
await node.put({ flood: { containers: { main: floodScript(seconds) } } });
await node.podIs('flood', 'running', ({ phase }) => phase === 'Running');
await using sizes = new SizeWatch(node.podLogs);
const delays = monitorEventLoopDelay({ resolution: resolutionMs });
const cpu = process.cpuUsage();
const startMs = performance.now();
delays.enable();
let isOver = false;
const followed = followFlood(node, 'flood', () => isOver);
await pause(seconds * 1_000);
delays.disable();
const tookMs = performance.now() - startMs;
const { user, system } = process.cpuUsage(cpu);
await pause(5_000);
isOver = true;
const { bytes, problem } = await followed;
print(
  'logged and followed',
  `${(bytes / 1e6 / (tookMs / 1_000)).toFixed(0)} MB/s (target 100), ${(bytes / 1e9).toFixed(2)} GB`,
);
print('lines lost or repeated', problem ?? 'none (target none)');
print(
  'files held at most',
  `${(sizes.most / mebibyte).toFixed(1)} MiB (target ${capMebibytes} MiB and one look's growth)`,
);
print('files hold at the end', `${(sizes.now / mebibyte).toFixed(1)} MiB`);
print('event loop held at most', `${(delays.max / 1e6 - resolutionMs).toFixed(1)} ms (target 50 ms)`);
print('event loop held, p99', `${(delays.percentile(99) / 1e6 - resolutionMs).toFixed(1)} ms`);
print('CPU of kubelet and reader', `${(((user + system) / 1e3 / tookMs) * 100).toFixed(0)} % of a core`);
process.exitCode = 0;
