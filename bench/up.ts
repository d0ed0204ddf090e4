/**
 * How soon `kubeling up` is there for kubectl, and what it holds while nothing happens: with its API, and the kubelet
 * alone. The private containerd runs all the time. Prints the targets beside the figures; asserts nothing.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { KubelingNode } from '../test/kubeling-node.ts';
import { percentile, print } from './figures.ts';
import { processFigures } from './process-figures.ts';

const starts = 7;
/** Long enough for a rest to be noticed, and memory to be given back. */
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
