/**
 * Measures the lower bound for kubeling: how fast the runtime of this machine starts and removes
 * pods over bare CRI, what the CRI client costs compared to grpc-js, and the memory of an idle
 * process. Prints; asserts nothing.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openPrivateRuntime, type PrivateRuntime } from '../test/private-runtime.ts';
import { timed } from './compare.ts';
import { mean, percentiles, print } from './figures.ts';
import { type PodHandle, removePod, startPod } from './pods.ts';

const sequentialPods = 60;
const pods = 50;
const callsPerClient = 4_000;
const comparedCalls = [
  ['version', 1],
  ['version', 20],
  ['containerStatus', 1],
  ['containerStatus', 20],
  ['listContainers', 1],
] as const;

const run = promisify(execFile);
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

async function oneByOne(runtime: PrivateRuntime): Promise<void> {
  const starts: number[] = [];
  const removals: number[] = [];
  for (let index = 0; index < sequentialPods; index++) {
    const started = await timed(() => startPod(runtime, `one-${index}`));
    starts.push(started.ms);
    removals.push((await timed(() => removePod(runtime, started.value))).ms);
  }
  print('sandbox + create + start, one by one', percentiles(starts));
  print('stop + remove, one by one', percentiles(removals));
}

async function atOnce(runtime: PrivateRuntime): Promise<void> {
  const names = Array.from({ length: pods }, (_, index) => `many-${index}`);
  const started = await timed(() => Promise.all(names.map((name) => startPod(runtime, name))));
  print(`${pods} at once, all running`, `${started.ms.toFixed(0)} ms`);
  await compareClients(runtime, started.value);
  const removed = await timed(() => Promise.all(started.value.map((pod) => removePod(runtime, pod))));
  print(`${pods} at once, all removed`, `${removed.ms.toFixed(0)} ms`);
}

/**
 * Runs kubeling's CRI client and grpc-js alternately, each in a separate process, with the same
 * calls to the same runtime.
 */
async function compareClients(runtime: PrivateRuntime, running: readonly PodHandle[]): Promise<void> {
  const socket = runtime.containerd.layout.socket;
  const containerId = running[0]?.containerId ?? '';
  for (const [call, atOnce] of comparedCalls) {
    const cpu: Record<string, number[]> = { ours: [], grpcjs: [] };
    for (let round = 0; round < 3; round++) {
      for (const client of ['ours', 'grpcjs']) {
        const args = [client, socket, call, String(callsPerClient), containerId, String(atOnce)];
        const { stdout } = await run(process.execPath, [here('client-cpu.ts'), ...args]);
        cpu[client]?.push(Number(stdout));
      }
    }
    const [ours, theirs] = [mean(cpu['ours'] ?? []), mean(cpu['grpcjs'] ?? [])];
    const ratio = (ours / theirs).toFixed(2);
    print(
      `CPU a call, ${call}, ${atOnce} at once`,
      `ours ${ours.toFixed(0)} µs, grpc-js ${theirs.toFixed(0)} µs, ratio ${ratio}`,
    );
  }
}

/**
 * Measures an idle process with and without the launcher's V8 flags. All starts share a compile
 * cache, so the first one is not counted.
 */
async function idle(runtime: PrivateRuntime): Promise<void> {
  const args = [...process.execArgv, here('idle.ts'), runtime.containerd.layout.socket];
  const env = { ...process.env, NODE_COMPILE_CACHE: `${runtime.dataDir}/compile-cache` };
  for (const flags of [[], ['--single-threaded', '--max-semi-space-size=4']]) {
    const figures: { firstAnswerMs: number; residentMb: number }[] = [];
    for (let round = 0; round < 6; round++) {
      const { stdout } = await run(process.execPath, [...flags, ...args], { env });
      figures.push(JSON.parse(stdout));
    }
    const warm = figures.slice(1);
    const response = percentiles(warm.map((item) => item.firstAnswerMs));
    const resident = mean(warm.map((item) => item.residentMb)).toFixed(1);
    print(`start to first CRI answer ${flags.join(' ')}`, `${response} (target 300 ms)`);
    print(`resident, idle, all imported ${flags.join(' ')}`, `${resident} MB (target 75 MB)`);
  }
}

await using runtime = await openPrivateRuntime();
console.log(`containerd ${runtime.version}, Node.js ${process.versions.node}`);
await oneByOne(runtime);
await atOnce(runtime);
await idle(runtime);
