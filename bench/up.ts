/**
 * Measures how soon `kubeling up` is ready for kubectl, and its memory and CPU while idle: with its
 * API, and as a kubelet alone. The private containerd keeps running. Prints the targets next to the
 * results; asserts nothing.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { KubelingNode } from '../test/kubeling-node.ts';
import { percentile, print } from './figures.ts';
import { processFigures } from './process-figures.ts';

const starts = 7;
/**
 * How long the process is left alone before its memory and CPU are measured: long enough to become
 * idle and to return memory to the kernel.
 */
const restMs = 60_000;

async function measure(node: KubelingNode, what: string, target: string): Promise<void> {
  const [wall, cpu]: [number[], number[]] = [[], []];
  for (let start = 0; start < starts; start++) {
    await node.end('SIGTERM');
    const beganMs = performance.now();
    await node.start();
    wall.push(performance.now() - beganMs);
    cpu.push((await processFigures(node.pid)).cpuMs);
  }
  await pause(restMs);
  const { residentMb } = await processFigures(node.pid);
  print(`${what}, start to ready`, `${half(wall)} ms, ${half(cpu)} ms of CPU (${target})`);
  print(`${what}, at rest`, `${residentMb.toFixed(1)} MB resident`);
}

function half(values: readonly number[]): string {
  return percentile(values, 0.5).toFixed(0);
}

await using node = await KubelingNode.open();
await measure(node, 'API and kubelet', 'target under 2,000 ms and 130 MB');
node.change({}, ['--local-api=false']);
await measure(node, 'kubelet alone', 'for comparison');
