import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isKind } from '../../src/lib/index.ts';
import { signal } from './pods.ts';
import type { Part } from './suite.ts';

export const nodeContract: Part = (get) => {
  test('the runtime reports its name and version, and supports the CRI version that kubeling uses', async () => {
    const version = await get().cri.checkVersion(signal);
    assert.equal(version.version, '0.1.0');
    assert.equal(version.runtimeName, 'containerd');
    assert.equal(version.runtimeApiVersion, 'v1');
  });

  test('runtime and network are ready', async () => {
    const { status } = await get().cri.status({}, signal);
    const conditions = new Map(status?.conditions.map((condition) => [condition.type, condition.status]));
    assert.equal(conditions.get('RuntimeReady'), true);
    assert.equal(conditions.get('NetworkReady'), true);
  });

  test('verbose status details are returned only on request', async () => {
    assert.deepEqual((await get().cri.status({ verbose: false }, signal)).info, {});
    assert.notDeepEqual((await get().cri.status({ verbose: true }, signal)).info, {});
  });

  test('the cgroup driver is reported from containerd 2.0 on', async () => {
    const { cri, flavour } = get();
    if (flavour !== 'containerd-2') {
      await assert.rejects(cri.runtimeConfig({}, signal), (error) => isKind(error, 'Unsupported'));
      return;
    }
    const { linux } = await cri.runtimeConfig({}, signal);
    assert.equal(linux?.cgroupDriver, 'CGROUPFS');
  });
};
