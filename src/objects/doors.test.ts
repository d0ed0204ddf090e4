import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { ScriptedApi, serverAway } from '../../test/fakes/scripted-api.ts';
import { standaloneObjects } from '../../test/fakes/standalone-objects.ts';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { ConfigMap, EnvVar, Secret, Service, ServiceAccount } from '../kinds/index.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import {
  containerEnvironment,
  ExpansionBudget,
  type ObjectLookup,
  type PullSecrets,
  type ServiceAccounts,
} from '../runtime/index.ts';
import { makePodObjects, PodServiceAccounts, requiredSecret, Services } from './index.ts';

/** Tests the objects package through the interfaces that other packages use. */
const { signal } = new AbortController();

function createHarness() {
  const clock = new VirtualClock();
  const api = new ScriptedApi();
  const deps = { api, clock, random: seededRandom(1), logger: collectLogs(clock).logger };
  const objects = makePodObjects('Watch', {
    ...deps,
    syncFrequencyMs: 60_000,
    nodeAnnotations: () => undefined,
  });
  const services = new Services(deps);
  return { clock, api, objects, services };
}

const env: readonly EnvVar[] = [
  { name: 'COLOUR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'colour' } } },
  { name: 'NONE', valueFrom: { secretKeyRef: { name: 'gone', key: 'k', optional: true } } },
];
const pod = aPod({
  spec: {
    enableServiceLinks: true,
    containers: [{ name: 'main', env, envFrom: [{ secretRef: { name: 'keys' } }] }],
  },
});

test('builds the environment variables of a container from watched objects and services', async () => {
  const { clock, api, objects, services } = createHarness();
  const lookup: ObjectLookup = objects;
  const made = async () => {
    const inputs = {
      objects: lookup,
      services: services.known(),
      allocatable: new Map(),
      podIps: [],
      hostIps: [],
    };
    const [container = { name: '' }] = pod.spec.containers;
    const variables = await containerEnvironment(pod, container, inputs, new ExpansionBudget(), signal);
    return variables.map(({ name, value }) => `${name}=${value}`).slice(0, 3);
  };
  const end = new AbortController();
  const running = services.run(end.signal).catch(() => {});
  await assert.rejects(made(), {
    message: 'services have not yet been read at least once, cannot construct envvars',
  });
  await settle();
  await assert.rejects(made(), { message: 'object "default"/"keys" not registered' });
  objects.register(pod);
  await assert.rejects(made(), { code: 'CONTAINER_CONFIG', message: 'secret "keys" not found' });
  const data = { TOKEN: Buffer.from('s3cret').toString('base64') };
  api.put<Secret>('secrets', { metadata: { namespace: 'default', name: 'keys' }, data });
  api.put<ConfigMap>('configmaps', {
    metadata: { namespace: 'default', name: 'settings' },
    data: { colour: 'red' },
  });
  api.put<Service>('services', {
    metadata: { namespace: 'default', name: 'kubernetes' },
    spec: { clusterIP: '10.96.0.1', ports: [{ port: 443 }] },
  });
  await settle();
  assert.deepEqual(await made(), ['TOKEN=s3cret', 'COLOUR=red', 'KUBERNETES_SERVICE_HOST=10.96.0.1']);
  end.abort(new Error('over'));
  await running;
  objects.unregister(pod.metadata.uid);
  await settle();
  assert.deepEqual([api.watches, clock.pendingTimers], [0, 0]);
});

test('throws for an optional object when the API server is unreachable, instead of treating the object as missing', async () => {
  const { clock, api, objects } = createHarness();
  api.failure = serverAway();
  objects.register(pod);
  const read = assert.rejects(objects.secret('default', 'gone', signal), { code: 'OBJECT_UNSYNCED' });
  await clock.advance(1_000);
  await read;
});

test('returns pull secrets, or throws for a missing one', async () => {
  const { api, objects } = createHarness();
  const pulls: PullSecrets = {
    get: (namespace, name, inner) => requiredSecret(objects, namespace, name, inner),
  };
  objects.register(aPod({ spec: { imagePullSecrets: [{ name: 'pull' }] } }));
  await assert.rejects(pulls.get('default', 'pull', signal), {
    code: 'OBJECT_NOT_FOUND',
    message: 'secret "pull" not found',
  });
  api.put<Secret>('secrets', { metadata: { namespace: 'default', name: 'pull' }, type: 'x' });
  await settle();
  assert.equal((await pulls.get('default', 'pull', signal)).type, 'x');
  await assert.rejects(requiredSecret(standaloneObjects, 'default', 'pull', signal), {
    code: 'OBJECTS_STANDALONE',
  });
});

test('returns service accounts and pod tokens for image credential providers', async () => {
  const { api } = createHarness();
  const observed: string[] = [];
  const accounts: ServiceAccounts = new PodServiceAccounts({
    api,
    tokens: {
      get: async ({
        serviceAccount,
        serviceAccountUid,
        audience,
        expirationSeconds,
        namespace,
        pod: { uid },
      }) => {
        const token = [namespace, serviceAccount, serviceAccountUid, audience, expirationSeconds, uid].join(
          ' ',
        );
        return { token, expiresMs: 0, expirationSeconds, serviceAccountUid };
      },
      observeServiceAccount: (...saw) => observed.push(saw.join(' ')),
    },
  });
  api.put<ServiceAccount>('serviceaccounts', {
    metadata: { namespace: 'default', name: 'sa', uid: 'u1', annotations: { a: 'b' } },
  });
  assert.deepEqual(await accounts.get('default', 'sa', signal), { uid: 'u1', annotations: { a: 'b' } });
  assert.deepEqual(observed, ['default sa u1']);
  const request = { pod, serviceAccount: 'sa', serviceAccountUid: 'u1', audience: 'registry' };
  assert.equal(await accounts.token(request, signal), 'default sa u1 registry  uid-1');
});
