import { readFileSync } from 'node:fs';
import { ControlPlane } from '../../cluster/control-plane.ts';
import { clusterAssets, noCluster } from '../../cluster/programs.ts';
import type { Server } from './server.ts';

/** The controllers that do what the embedded API does without a controller manager. */
const controllers = [
  'namespace-controller',
  'serviceaccount-controller',
  'serviceaccount-token-controller',
  'root-ca-certificate-publisher-controller',
  'certificatesigningrequest-approving-controller',
  'certificatesigningrequest-signing-controller',
  'persistentvolume-binder-controller',
  'persistentvolume-protection-controller',
  'persistentvolumeclaim-protection-controller',
];

/**
 * Starts a separate kube-apiserver with a few controllers. Its etcd must support streamed lists:
 * 3.5.13 or later.
 */
export async function openRealServer(): Promise<Server> {
  const missing = noCluster();
  if (missing !== false) throw new Error(`Cannot start a control plane: ${missing}`);
  const plane = await ControlPlane.open(clusterAssets(), {
    controllerManagerFlags: [`--controllers=${controllers.join(',')}`],
  });
  // The administrator has the same user name as in the embedded API.
  const admin = plane.issue({ subject: '/O=system:masters/CN=kubeling-admin' });
  const node = plane.issue({ subject: '/O=system:nodes/CN=system:node:n1' });
  return {
    url: plane.serverUrl,
    ca: readFileSync(plane.ca),
    identity: (who) => ({ admin, node, nobody: {} })[who],
    dropHistory: () => plane.forgetHistory(),
    [Symbol.asyncDispose]: () => plane[Symbol.asyncDispose](),
  };
}
