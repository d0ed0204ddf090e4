import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually, KubelingNode } from '../kubeling-node.ts';
import { skipReason } from './containerd-fixture.ts';

const signal = new AbortController().signal;

describe('kubeling up with a shutdown grace period', { skip: skipReason(), timeout: 240_000 }, () => {
  let node: KubelingNode;
  before(async () => {
    node = await KubelingNode.open(undefined, ['--shutdown-grace-period=20s']);
  });
  after(async () => {
    assert.deepEqual(await node.leave(), []);
  });

  const running = async () =>
    (await node.cri.listContainers({ filter: { state: { state: 'CONTAINER_RUNNING' } } }, signal)).containers;

  it('SIGTERM terminates the pods, and pods of manifests start again at the next start', async () => {
    const script =
      "trap 'sleep 0.5; date > /told/ended; exit 0' TERM; date > /told/begun; while true; do sleep 0.05; done";
    await node.put('patient.json', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'patient' },
      spec: {
        containers: [
          {
            name: 'main',
            image: 'localhost/kubeling/busybox:1',
            command: ['sh', '-c', script],
            volumeMounts: [{ name: 'told', mountPath: '/told' }],
          },
        ],
        volumes: [
          { name: 'told', hostPath: { path: join(node.dataDir, 'told'), type: 'DirectoryOrCreate' } },
        ],
      },
    });
    const told = (name: string) => readFile(join(node.dataDir, 'told', name), 'utf8').catch(() => undefined);
    await node.running('patient');
    await eventually('the pod to have started', () => told('begun'));
    await node.end('SIGTERM');
    assert.ok((await told('ended')) !== undefined, `it did not receive SIGTERM:\n${node.out}`);
    assert.deepEqual(await running(), []);
    assert.match(node.out, /^ending +stopping the pods first/m);
    await node.start();
    await node.running('patient');
  });

  it('Ctrl-C leaves the pods running', async () => {
    await node.end('SIGINT');
    assert.equal((await running()).length, 1);
    await node.start();
  });
});
