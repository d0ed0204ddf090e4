/**
 * A third-party DRA driver in a separate process. Each call is a line in its log; a control file
 * makes calls fail or hang. usage: sample-driver.ts <name> <folder> <unused> <plugin registry>
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { CallLog, load, serve, serveRegistration } from '../plugin-parts.ts';

interface Asked {
  readonly claims: readonly { readonly namespace: string; readonly uid: string; readonly name: string }[];
}

const [name = '', folder = '', , registry = ''] = process.argv.slice(2);
const calls = new CallLog(folder);

const forEach = ({ claims }: Asked, answer: (uid: string) => object) => ({
  claims: Object.fromEntries(claims.map(({ uid }) => [uid, answer(uid)])),
});

/**
 * Returns two devices: `wide` belongs only to the request of that name, `all` belongs to every
 * request.
 */
const devicesFor = (uid: string) => ({
  devices: [
    { pool_name: 'node-a', device_name: 'all', cdi_device_ids: [`${name}/claim=${uid}`] },
    {
      request_names: ['wide'],
      pool_name: 'node-a',
      device_name: 'wide',
      cdi_device_ids: [`${name}/wide=${uid}`],
    },
  ],
});

/** Returns the service definition of `package k8s.io.kubelet.pkg.apis.dra.v1`. */
function serviceIn(loaded: Record<string, unknown>): ServiceDefinition {
  const path = ['k8s', 'io', 'kubelet', 'pkg', 'apis', 'dra', 'v1', 'DRAPlugin', 'service'];
  return path.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], loaded) as ServiceDefinition;
}

mkdirSync(folder, { recursive: true });
const endpoint = join(folder, 'dra.sock');
await serve(endpoint, serviceIn(load('resources/dra/proto/dra.proto')), {
  NodePrepareResources: calls.unary('NodePrepareResources', (asked: Asked) => forEach(asked, devicesFor)),
  NodeUnprepareResources: calls.unary('NodeUnprepareResources', (asked: Asked) => forEach(asked, () => ({}))),
});
const facts = { type: 'DRAPlugin', name, endpoint, supported_versions: ['v1.DRAPlugin'] };
await serveRegistration(join(registry, `${name}-reg.sock`), facts, calls);
