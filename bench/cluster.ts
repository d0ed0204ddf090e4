/**
 * Measures a kubelet's share of the life of a pod in a real cluster, compared to bare CRI on the
 * same machine: from the creation of the pod in the API server to Ready, and from its deletion to
 * its removal, for single pods and for many concurrent pods. `KUBELET` names another kubelet to
 * measure instead of kubeling. Prints the targets next to the results; asserts nothing.
 */
import { ClusterNode } from '../test/cluster/cluster-node.ts';
import { ControlPlane } from '../test/cluster/control-plane.ts';
import { clusterAssets, noCluster } from '../test/cluster/programs.ts';
import { openPrivateRuntime, type PrivateRuntime } from '../test/private-runtime.ts';
import { besideFloor, names } from './beside-floor.ts';
import { compare } from './compare.ts';
import { Desk, plainSpec } from './desk.ts';
import { print } from './figures.ts';
import { processFigures } from './process-figures.ts';

const sequentialPods = 20;
const manyPods = 50;
const manyRounds = 3;

async function oneByOne(runtime: PrivateRuntime, desk: Desk): Promise<void> {
  const groups = names('one', sequentialPods).map((name) => [name]);
  const { starts, removals } = await besideFloor(runtime, desk, groups);
  compare('made to Ready, one by one', starts, 'p50 + 60 ms');
  compare('deleted to gone, one by one', removals, 'p50 + 150 ms');
}

async function manyAtOnce(runtime: PrivateRuntime, desk: Desk): Promise<void> {
  const groups = names('many', manyRounds).map((round) => names(`${round}-`, manyPods));
  const { starts } = await besideFloor(runtime, desk, groups);
  compare(`${manyPods} at once, all Ready`, starts, '1.25 x floor');
}

const missing = noCluster();
if (missing !== false) {
  console.log(`Nothing is measured: ${missing}`);
} else {
  await using runtime = await openPrivateRuntime();
  await using plane = await ControlPlane.open(clusterAssets());
  await using node = await ClusterNode.open(plane);
  await node.start();
  await node.ready();
  await using desk = new Desk(plane.adminKubeconfig, () => plainSpec(node.name));
  await desk.open();
  await oneByOne(runtime, desk);
  await manyAtOnce(runtime, desk);
  const { cpuMs, residentMb } = await processFigures(node.pid);
  print(
    'the kubelet, over all this',
    `${(cpuMs / 1_000).toFixed(1)} s of CPU, ${residentMb.toFixed(1)} MB resident`,
  );
}
