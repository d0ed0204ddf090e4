import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { DriverProcess } from '../csi/driver-process.ts';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';

const driverName = 'trouble.test.kubeling';

const csiDriver = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIDriver',
  metadata: { name: driverName },
  spec: { attachRequired: false, volumeLifecycleModes: ['Ephemeral'] },
};

const driven = { csi: { driver: driverName } };

function pod(name: string, source: object): object {
  const command = ['sh', '-c', 'trap "exit 0" TERM; while true; do sleep 0.1; done'];
  const volumeMounts = [{ name: 'data', mountPath: '/data' }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: busyboxImageName, command, volumeMounts }],
      volumes: [{ name: 'data', ...source }],
    },
  };
}

/**
 * The tests use a CSI driver in a separate process, the real kubectl, the real containerd and real
 * mounts.
 */
describe('volume failures on kubeling up', { timeout: 600_000, skip: withoutKubectl() }, () => {
  let cluster: LocalCluster;
  let driver: DriverProcess;
  let folder: string;
  const holders: ChildProcess[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klg-trouble-'));
    cluster = await LocalCluster.open();
    const registry = join(cluster.node.dataDir, 'kubelet/plugins_registry');
    driver = new DriverProcess(driverName, join(folder, 'driver'), registry);
    await cluster.apply(csiDriver);
    await driver.start();
  });

  after(async () => {
    for (const holder of holders) holder.kill('SIGKILL');
    await driver?.kill();
    const left = await cluster?.leave();
    await rm(folder, { recursive: true, force: true });
    assert.deepEqual(left, []);
  });

  const gone = (name: string) => cluster.kubectl('wait', '--for=delete', `pod/${name}`, '--timeout=90s');
  const events = (name: string) => ['get', 'events', '--field-selector', `involvedObject.name=${name}`];
  const podDirOf = async (name: string) => {
    const uid = await cluster.kubectl('get', 'pod', name, '-o', 'jsonpath={.metadata.uid}');
    return join(cluster.node.dataDir, 'kubelet/pods', uid);
  };

  /** Starts a process whose working directory is the volume, which prevents its unmount. */
  async function hold(directory: string): Promise<ChildProcess> {
    const holder = spawn('sleep', ['1000'], { cwd: directory });
    holders.push(holder);
    await once(holder, 'spawn');
    return holder;
  }

  async function release(holder: ChildProcess): Promise<void> {
    const ended = once(holder, 'exit');
    holder.kill('SIGKILL');
    await ended;
  }

  it('a hanging driver blocks no other pod, and the pod starts once the driver is restarted', async () => {
    driver.trouble({ NodePublishVolume: 'hang' });
    await cluster.apply(pod('stuck', driven));
    const isAsked = async () => driver.calls('NodePublishVolume').length > 0;
    await cluster.node.until('the driver to be called', isAsked);
    await cluster.apply(pod('other', { emptyDir: { medium: 'Memory' } }));
    await cluster.ready('other');
    await cluster.kubectl('delete', 'pod', 'other');
    const phase = await cluster.kubectl('get', 'pod', 'stuck', '-o', 'jsonpath={.status.phase}');
    assert.equal(phase, 'Pending');
    driver.trouble({});
    await driver.kill();
    await cluster.until('the event', events('stuck'), (out) =>
      out.includes('MountVolume.SetUp failed for volume "data" : rpc error: code = Unavailable'),
    );
    await driver.start();
    await cluster.ready('stuck');
    await cluster.kubectl('delete', 'pod', 'stuck');
  });

  for (const [name, source, place] of [
    ['memory', { emptyDir: { medium: 'Memory' } }, 'kubernetes.io~empty-dir/data'],
    [
      'secret',
      { projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
      'kubernetes.io~projected/data',
    ],
    ['driven', driven, 'kubernetes.io~csi/data/mount'],
  ] as const) {
    it(`a volume still in use after its pod has terminated is reported, stays mounted, and is removed when released: ${name}`, async () => {
      await cluster.apply(pod(name, source));
      await cluster.ready(name);
      const podDir = await podDirOf(name);
      const directory = join(podDir, 'volumes', place);
      const holder = await hold(directory);
      await cluster.kubectl('delete', 'pod', name, '--wait=false');
      await cluster.until('the event', events(name), (out) => {
        const line = out.split('\n').find((each) => each.includes('FailedVolumeRemoval'));
        return line?.includes(directory) === true;
      });
      const isMounted = () => readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${directory} `);
      assert.ok(isMounted());
      await cluster.apply(pod('other', source));
      await cluster.ready('other');
      await cluster.kubectl('delete', 'pod', 'other');
      await release(holder);
      await gone(name);
      assert.ok(!isMounted());
      await cluster.node.until('its directory to be removed', async () => !existsSync(podDir));
    });
  }

  it('a pod is not deleted while a mount of an unknown plugin is in its directory', async () => {
    await cluster.apply(pod('foreign', { emptyDir: {} }));
    await cluster.ready('foreign');
    const podDir = await podDirOf('foreign');
    const point = join(podDir, 'volumes/acme.io~disk/theirs');
    mkdirSync(point, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', point]);
    try {
      await cluster.kubectl('delete', 'pod', 'foreign', '--wait=false');
      await cluster.until('the event', events('foreign'), (out) =>
        out.includes(`mounted volumes=[theirs]: ${point} is mounted`),
      );
      // The pod still exists, although all its containers have exited.
      const phase = await cluster.kubectl('get', 'pod', 'foreign', '-o', 'jsonpath={.status.phase}');
      assert.notEqual(phase, '');
    } finally {
      execFileSync('umount', [point]);
    }
    await gone('foreign');
    await cluster.node.until('its directory to be removed', async () => !existsSync(podDir));
  });
});
