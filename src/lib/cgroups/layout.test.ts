import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SimulatedCgroupHost } from '../../../test/fakes/simulated-cgroup-host.ts';
import { cgroupMagic, cgroupRoots, detectCgroupLayout } from './layout.ts';

describe('detectCgroupLayout', () => {
  it('detects cgroup v2 by the type of the mounted file system', async () => {
    const host = new SimulatedCgroupHost({ mode: 'v2' });
    assert.deepEqual(await detectCgroupLayout(host), { version: 2, root: '/sys/fs/cgroup' });
  });

  it('finds joined controllers and named hierarchies of cgroup v1', async () => {
    const layout = await detectCgroupLayout(new SimulatedCgroupHost({ mode: 'v1' }));
    assert.ok(layout.version === 1);
    assert.equal(layout.controllers.get('cpuacct'), '/sys/fs/cgroup/cpu,cpuacct');
    assert.equal(layout.controllers.get('systemd'), '/sys/fs/cgroup/systemd');
    assert.equal(layout.unified, undefined);
    assert.equal(cgroupRoots(layout).length, 8);
  });

  it('finds the cgroup v2 hierarchy of a hybrid machine, next to those of cgroup v1', async () => {
    const layout = await detectCgroupLayout(new SimulatedCgroupHost({ mode: 'hybrid' }));
    assert.ok(layout.version === 1);
    assert.equal(layout.unified, '/sys/fs/cgroup/unified');
    assert.ok(cgroupRoots(layout).includes('/sys/fs/cgroup/unified'));
  });

  it('uses the shortest path of a controller that is mounted twice, and ignores a mount that a later one hides', async () => {
    const host = new SimulatedCgroupHost({ mode: 'v1' });
    const text = await host.mountinfo();
    const twice = text.replaceAll('/sys/fs/cgroup/memory', '/far/away/from/sys/fs/cgroup/memory');
    const layout = await detectCgroupLayout(
      Object.assign(Object.create(host), {
        mountinfo: async () => `${twice}${text}`,
        fsType: async (path: string) => (path.includes('/far') ? cgroupMagic.v1 : host.fsType(path)),
      }),
    );
    assert.ok(layout.version === 1);
    assert.equal(layout.controllers.get('memory'), '/sys/fs/cgroup/memory');
  });

  it('rejects a machine that lacks required controllers, and names them in the error', async () => {
    const host = new SimulatedCgroupHost({ mode: 'v1', mounts: ['cpu', 'memory'] });
    await assert.rejects(detectCgroupLayout(host), {
      code: 'CGROUPS_UNUSABLE',
      message: /controllers cpuacct, cpuset must be mounted: mounted are .*cpu, .*memory/,
    });
  });
});
