/**
 * Runs a control plane until Ctrl-C, for manual tests: `node test/cluster/by-hand.ts [NODE_NAME]`.
 */
import { once } from 'node:events';
import { ControlPlane } from './control-plane.ts';
import { clusterAssets, noCluster } from './programs.ts';

const missing = noCluster();
if (missing !== false) throw new Error(`Cannot start a control plane: ${missing}`);
const ended = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
await using plane = await ControlPlane.open(clusterAssets());
console.log(`server                  ${plane.serverUrl}`);
console.log(`logs in                 ${plane.folder}`);
console.log(`clientCAFile            ${plane.ca}`);
console.log(`export KUBECONFIG=${plane.adminKubeconfig}`);
console.log(`--kubeconfig            ${await plane.nodeKubeconfig(process.argv[2] ?? 'node-a')}`);
console.log(`--bootstrap-kubeconfig  ${await plane.bootstrapKubeconfig()}`);
await ended;
