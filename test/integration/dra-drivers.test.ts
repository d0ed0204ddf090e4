import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { collectLogs, KubelingError, realClock, systemRandom } from '../../src/lib/index.ts';
import { Registration } from '../../src/plugins/gen/registration.ts';
import { hostPluginHost, PluginRegistry } from '../../src/plugins/index.ts';
import { podUid } from '../../src/pods/index.ts';
import { GrpcServer, type ServiceType } from '../../src/protocols/grpc/index.ts';
import { DRAPlugin, type DRAPluginMethods } from '../../src/resources/dra/gen/plugin.ts';
import { DraDrivers, DraManager } from '../../src/resources/index.ts';
import { aPod } from '../fakes/pods.ts';
import { eventually } from '../kubeling-node.ts';

const clock = realClock();

/** A third-party DRA driver: it registers at one socket and serves at another. */
async function aDriver(folder: string, version: 'v1' | 'v1beta1') {
  const server = new GrpcServer();
  const calls: string[] = [];
  const reported: boolean[] = [];
  const endpoint = join(folder, 'dra.sock');
  const service: ServiceType<DRAPluginMethods> = {
    ...DRAPlugin,
    fullName: `k8s.io.kubelet.pkg.apis.dra.${version}.DRAPlugin`,
  };
  server.add(service, {
    nodePrepareResources: async ({ claims }) => {
      calls.push(...claims.map(({ name }) => `prepare ${name}`));
      const device = { requestNames: [], poolName: 'pool', deviceName: 'gpu-0' };
      const devices = [{ ...device, cdiDeviceIds: ['example.com/gpu=0'] }];
      return { claims: Object.fromEntries(claims.map(({ uid }) => [uid, { devices }])) };
    },
    nodeUnprepareResources: async ({ claims }) => {
      calls.push(...claims.map(({ name }) => `unprepare ${name}`));
      return { claims: Object.fromEntries(claims.map(({ uid }) => [uid, {}])) };
    },
  });
  await server.listen(endpoint);
  const registration = new GrpcServer();
  registration.add(Registration, {
    getInfo: async () => ({
      type: 'DRAPlugin',
      name: 'gpu.example.com',
      endpoint,
      supportedVersions: [`${version}.DRAPlugin`],
    }),
    notifyRegistrationStatus: async ({ pluginRegistered }) => {
      reported.push(pluginRegistered);
      return {};
    },
  });
  await registration.listen(join(folder, 'registry', 'gpu-reg.sock'));
  return { server, registration, calls, told: reported };
}

describe('a DRA driver', () => {
  for (const version of ['v1', 'v1beta1'] as const) {
    it(`a DRA driver with ${version} registers, prepares a claim and unprepares it`, async (t) => {
      const folder = await mkdtemp(join(tmpdir(), 'klg-dra-'));
      await mkdir(join(folder, 'registry'));
      const { server, registration, calls, told } = await aDriver(folder, version);
      const host = hostPluginHost(clock, systemRandom());
      const { logger } = collectLogs(clock);
      const drivers = new DraDrivers({ open: (socket) => host.open(socket), clock });
      const directory = join(folder, 'registry');
      const handlers = new Map([['DRAPlugin', drivers]]);
      const registry = new PluginRegistry({
        directory,
        host,
        handlers,
        clock,
        random: systemRandom(),
        logger,
      });
      const stop = new AbortController();
      const running = registry.run(stop.signal).catch(() => {});
      t.after(async () => {
        stop.abort(new KubelingError('CANCELLED', 'The test has ended'));
        await running;
        drivers.deregister({ name: 'gpu.example.com', endpoint: join(folder, 'dra.sock'), versions: [] });
        await server[Symbol.asyncDispose]();
        await registration[Symbol.asyncDispose]();
        await rm(folder, { recursive: true });
      });
      await eventually('the driver to be registered', async () => (told.includes(true) ? true : undefined));
      const uid = podUid('11111111-aaaa-4bbb-8ccc-000000000001');
      const manager = new DraManager({
        drivers,
        fetchClaim: async (namespace, name) => ({
          metadata: { name, namespace, uid: 'claim-1' },
          status: {
            reservedFor: [{ uid }],
            allocation: { devices: { results: [{ driver: 'gpu.example.com' }] } },
          },
        }),
        file: { read: async () => undefined, write: async () => {} },
        mayRun: () => true,
        clock,
        logger,
      });
      const pod = aPod({
        metadata: { uid },
        spec: { resourceClaims: [{ name: 'gpu', resourceClaimName: 'my-gpu' }] },
      });
      await manager.prepare(pod, stop.signal);
      const given = manager.cdiDevices(pod, { name: 'main', resources: { claims: [{ name: 'gpu' }] } });
      assert.deepEqual(given, ['example.com/gpu=0']);
      await manager.unprepare(uid, stop.signal);
      assert.deepEqual(calls, ['prepare my-gpu', 'unprepare my-gpu']);
    });
  }
});
