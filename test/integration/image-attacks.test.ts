import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { buildImage, imageArchitecture } from '../../src/containerd/index.ts';
import { InProcessNode } from '../in-process-node.ts';
import { ctr, limit, skipReason } from './containerd-fixture.ts';

/**
 * A label that makes containerd's restart monitor run the given program as root on the host after
 * the container has exited.
 */
const restartLabels = {
  'containerd.io/restart.status': 'running',
  'containerd.io/restart.policy': 'always',
  'containerd.io/restart.loguri': 'binary:///bin/false',
};

/**
 * The labels by which the kubelet recognizes its containers, here naming a container of another
 * pod.
 */
const foreignLabels = {
  'io.kubernetes.container.name': 'other',
  'io.kubernetes.pod.name': 'other',
  'io.kubernetes.pod.namespace': 'kube-system',
  'io.kubernetes.pod.uid': '00000000-0000-0000-0000-000000000000',
};

const overflowing = {
  /** 2^32, which overflows a 32-bit user ID to 0, the ID of root. */
  beyond: String(2 ** 32),
  /** The largest 32-bit user ID, which Linux treats as an invalid user. */
  nobody: String(2 ** 32 - 1),
  /** A user ID that overflows 64 bits; the image's /etc/passwd gives it to root. */
  endless: '99999999999999999999999',
};

const nameOf = (kind: string) => `localhost/test/${kind}:1`;

/** Images are untrusted: their configuration must not gain them any rights. */
describe('attacks through the configuration of an image', { skip: skipReason() }, () => {
  let node: InProcessNode;

  before(async () => {
    node = await InProcessNode.open();
    const store = await node.runtime.containerd.images();
    const passwd = `${overflowing.endless}:x:0:0::/:/bin/sh\n`;
    const base = {
      architecture: imageArchitecture(process.arch),
      env: { PATH: '/bin' },
      files: [
        { path: 'bin/sh', kind: 'file', mode: 0o755, data: await readFile('/bin/busybox') } as const,
        { path: 'etc/passwd', kind: 'file', mode: 0o644, data: Buffer.from(passwd) } as const,
      ],
    };
    const labels = { ...restartLabels, ...foreignLabels };
    await store.importArchive(buildImage({ ...base, name: nameOf('labelled'), labels }), limit());
    for (const [kind, user] of Object.entries(overflowing))
      await store.importArchive(buildImage({ ...base, name: nameOf(kind), user }), limit());
  });

  after(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  it('CVE-2026-53488: containerd has no plugin that starts programs named in image labels', async () => {
    const plugins = await ctr(node.runtime.containerd, 'plugins', 'ls');
    assert.match(plugins, /\bcri\b/);
    assert.doesNotMatch(plugins, /restart/);
  });

  it('image labels do not make a container count as a container of another pod', async () => {
    await node.put({
      labelled: { containers: { main: { script: 'echo mine', image: nameOf('labelled') } } },
    });
    assert.equal(await node.printed('labelled'), 'mine');
    const { status, metadata } = node.pod('labelled') ?? assert.fail('the pod is deleted');
    const [container] = status.containerStatuses ?? [];
    const containerId = container?.containerID?.replace(/^.*:\/\//, '') ?? '';
    const response = await node.runtime.cri.containerStatus({ containerId }, limit());
    assert.equal(response.status?.labels['io.kubernetes.pod.uid'], metadata.uid);
    assert.equal(response.status?.labels['io.kubernetes.container.name'], 'main');
  });

  for (const [kind, user] of Object.entries(overflowing))
    it(`CVE-2024-40635, CVE-2026-46680: rejects an image with the user ${user} where root is not allowed`, async () => {
      const securityContext = { runAsNonRoot: true };
      await node.put({
        [kind]: { containers: { main: { script: 'echo ran', image: nameOf(kind), securityContext } } },
      });
      const message = await node.waits(kind, 'CreateContainerConfigError');
      assert.match(message, /image has (?:an invalid user id|non-numeric user)/);
    });
});
