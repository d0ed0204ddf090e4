/**
 * Measures what volumes cost a pod: pods with a token, a config map, a secret and an emptyDir
 * volume alternate with pods without volumes, created through the API on the same node. Also
 * measures the idle cost of a thousand such volumes. Prints the targets next to the results;
 * asserts nothing.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { KubelingNode } from '../test/kubeling-node.ts';
import { names } from './beside-floor.ts';
import { Desk, plainSpec } from './desk.ts';
import { percentile, percentiles, print } from './figures.ts';
import { processFigures } from './process-figures.ts';

const sequentialPods = 20;
const manyPods = 50;
const manyRounds = 3;
const idlePods = 25;
const volumesOfIdlePod = 40;
const idleSeconds = 120;
const run = promisify(execFile);
const nodeName = hostname().toLowerCase();

/** Four volumes, one of each kind that pods commonly use. */
const fourVolumes = [
  { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
  { name: 'settings', configMap: { name: 'settings' } },
  { name: 'secret', secret: { secretName: 'secret' } },
  { name: 'scratch', emptyDir: {} },
];
const manyVolumes = names('v', volumesOfIdlePod / fourVolumes.length).flatMap((word) =>
  fourVolumes.map((volume) => ({ ...volume, name: `${word}-${volume.name}` })),
);

function withVolumes(volumes: readonly { readonly name: string }[]) {
  const spec = plainSpec(nodeName);
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/mnt/${name}` }));
  return { ...spec, volumes, containers: spec.containers.map((each) => ({ ...each, volumeMounts })) };
}

interface Both {
  readonly without: Desk;
  readonly withThem: Desk;
}

async function inTurn({ without, withThem }: Both, groups: readonly (readonly string[])[]) {
  const bare: number[] = [];
  const full: number[] = [];
  for (const group of groups) {
    bare.push(await without.appear(group));
    await without.vanish(group);
    full.push(await withThem.appear(group));
    await withThem.vanish(group);
  }
  return { bare, full };
}

async function starts(both: Both): Promise<void> {
  const one = await inTurn(
    both,
    names('one', sequentialPods).map((name) => [name]),
  );
  print('made to Ready, one by one, without volumes', percentiles(one.bare));
  print('made to Ready, one by one, with four', percentiles(one.full));
  const over = percentile(one.full, 0.5) - percentile(one.bare, 0.5);
  print('', `p50 + ${over.toFixed(0)} ms (target + 60 ms)`);
  const many = await inTurn(
    both,
    names('many', manyRounds).map((round) => names(`${round}-`, manyPods)),
  );
  print(`${manyPods} at once, all Ready, without volumes`, percentiles(many.bare));
  print(`${manyPods} at once, all Ready, with four each`, percentiles(many.full));
  const ratio = percentile(many.full, 0.5) / percentile(many.bare, 0.5);
  print('', `${ratio.toFixed(2)} x (target 1.2 x)`);
}

async function idleShare(node: KubelingNode): Promise<number> {
  await pause(10_000);
  const before = await processFigures(node.pid);
  await pause(idleSeconds * 1_000);
  const after = await processFigures(node.pid);
  return ((after.cpuMs - before.cpuMs) / (idleSeconds * 1_000)) * 100;
}

async function idle(node: KubelingNode, without: Desk, withMany: Desk): Promise<void> {
  const pods = names('idle', idlePods);
  await without.appear(pods);
  const bare = await idleShare(node);
  await without.vanish(pods);
  await withMany.appear(pods);
  const full = await idleShare(node);
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split(node.dataDir).length - 1;
  await withMany.vanish(pods);
  print(`idle, ${idlePods} pods without volumes, ${idleSeconds} s`, `${bare.toFixed(2)} % of a core`);
  const volumes = idlePods * volumesOfIdlePod;
  print(`idle, ${idlePods} pods with ${volumes} volumes`, `${full.toFixed(2)} % of a core, ${mounts} mounts`);
  print('', `+ ${(full - bare).toFixed(2)} % (target under 0.5 %)`);
}

await using node = await KubelingNode.open();
const kubeconfig = join(node.dataDir, 'kubeconfig');
const kubectl = async (...args: readonly string[]) => {
  await run('kubectl', ['--kubeconfig', kubeconfig, ...args]);
};
await kubectl('create', 'configmap', 'settings', '--from-literal=colour=blue', '--from-literal=size=10');
await kubectl('create', 'secret', 'generic', 'secret', '--from-literal=word=quiet');
await using without = new Desk(kubeconfig, () => plainSpec(nodeName));
await using withThem = new Desk(kubeconfig, () => withVolumes(fourVolumes));
await using withMany = new Desk(kubeconfig, () => withVolumes(manyVolumes));
for (const desk of [without, withThem, withMany]) await desk.open();
await starts({ without, withThem });
await idle(node, without, withMany);
