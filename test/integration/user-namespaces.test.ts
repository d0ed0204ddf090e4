import assert from 'node:assert/strict';
import { chmod, readdir, readFile, stat } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { InProcessNode, type PodParts } from '../in-process-node.ts';
import { eventually } from '../kubeling-node.ts';
import { skipReason } from './containerd-fixture.ts';

const stays = 'trap "exit 0" TERM; while true; do sleep 0.1; done';
const block = 65_536;

function podWith(procMount?: 'Unmasked'): PodParts {
  return {
    spec: { hostUsers: false, restartPolicy: 'Always', volumes: [{ name: 'data', emptyDir: {} }] },
    containers: {
      main: {
        script: `id -u; tr -s " " < /proc/self/uid_map; tr -s " " < /proc/self/gid_map; touch /data/file; stat -c "%u %g" /data /data/file /etc/hosts; echo said > /dev/termination-log && echo done; ${stays}`,
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
      },
      other: {
        script: `tr -s " " < /proc/self/uid_map; grep -c " /proc/sys " /proc/mounts; echo done; ${stays}`,
        ...(procMount === undefined ? {} : { securityContext: { procMount } }),
      },
    },
  };
}

describe('pods with user namespaces', { skip: skipReason() }, () => {
  let node: InProcessNode;
  let unable: string | false = false;

  before(async () => {
    node = await InProcessNode.open();
    // Makes the state directories of the runtime accessible, because the users of pods in user
    // namespaces must be able to traverse them.
    await chmod(node.path(), 0o711);
    await node.put({ one: podWith(), two: podWith('Unmasked') });
    await node.podIs('one', 'seen', () => true);
    const can = node.kubelet.state.runtimeState.abilities.handlers.get('')?.userNamespaces === true;
    if (!can) unable = 'the runtime has no user namespaces';
  });

  after(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  const log = async (name: string, container: string) =>
    await eventually(
      `${container} of ${name} to be done`,
      async () => {
        const text = await node.logOf(name, container).catch(() => '');
        return text.endsWith('done') ? text.split('\n').slice(0, -1) : undefined;
      },
      120_000,
      () => node.told(name),
    );
  const directory = (name: string) => node.path('kubelet', 'pods', node.pod(name)?.metadata.uid ?? '');
  const firstOf = async (name: string): Promise<number> => {
    const text = await readFile(`${directory(name)}/userns`, 'utf8');
    return JSON.parse(text).uidMappings[0].hostId;
  };

  it('pods with user namespaces are rejected by a runtime that does not support them', async (t) => {
    if (unable === false) return t.skip('the runtime supports user namespaces');
    const says = "can't set `spec.hostUsers: false`, runtime does not support user namespaces";
    for (const name of ['one', 'two']) {
      assert.equal(await node.event(name, 'FailedCreatePodSandBox'), `Failed to create pod sandbox: ${says}`);
      assert.equal(node.pod(name)?.status.phase, 'Pending');
      assert.deepEqual((await readdir(directory(name))).includes('userns'), false);
    }
  });

  it('containers run as root inside and unprivileged outside, each pod in a separate ID range', async (t) => {
    if (unable !== false) return t.skip(unable);
    for (const name of ['one', 'two']) {
      const lines = await log(name, 'main');
      const first = await firstOf(name);
      assert.equal(first % block, 0);
      const map = ` 0 ${first} ${block}`;
      assert.deepEqual(lines, ['0', map, map, '0 0', '0 0', '0 0']);
      assert.equal((await log(name, 'other'))[0], map);
      const { uid } = await stat(`${directory(name)}/volumes/kubernetes.io~empty-dir/data/file`);
      assert.equal(uid, 0, 'what it writes to a volume belongs to the root of the volume');
      assert.equal(await containerUser(name), first);
    }
    assert.notEqual(await firstOf('one'), await firstOf('two'));
    assert.deepEqual([(await log('one', 'other'))[1], (await log('two', 'other'))[1]], ['1', '0']);
  });

  it('a pod keeps its ID range when the kubelet restarts, and its ID range is released when it terminates', async (t) => {
    if (unable !== false) return t.skip(unable);
    const before = [await firstOf('one'), await firstOf('two')];
    await node.stop();
    await node.start();
    await node.put({ three: podWith() });
    await log('three', 'main');
    assert.deepEqual([await firstOf('one'), await firstOf('two')], before);
    assert.ok(!before.includes(await firstOf('three')));
    assert.equal(node.pod('one')?.status.containerStatuses?.[0]?.restartCount, 0);
    await node.take('one');
    await eventually('the pod to be deleted', async () => (node.pod('one') === undefined ? true : undefined));
    await eventually('its ID range to be free', async () =>
      node.kubelet.endpoints.entryCounts()['users'] === 2 ? true : undefined,
    );
    await node.put({ four: podWith() });
    await log('four', 'main');
    assert.equal(await firstOf('four'), before[0]);
    await node.clear();
    assert.equal(node.kubelet.endpoints.entryCounts()['users'], 0);
  });

  /** The process on the host that is the first process of the pod's container. */
  async function containerUser(name: string): Promise<number> {
    const containerId =
      node.pod(name)?.status.containerStatuses?.[0]?.containerID?.replace(/^.*:\/\//, '') ?? '';
    const { signal } = new AbortController();
    const { info } = await node.runtime.cri.containerStatus({ containerId, verbose: true }, signal);
    const { pid } = JSON.parse(info['info'] ?? '{}');
    return (await stat(`/proc/${pid}`)).uid;
  }
});
