import assert from 'node:assert/strict';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { container, isReady, pod, podIs, podIsGone, podSpec } from './cluster-pods.ts';
import { patiently } from './patiently.ts';
import { noCluster } from './programs.ts';
import { SmallCluster } from './small-cluster.ts';

const { signal } = new AbortController();

describe('a node with checkpoints of its API pods', { skip: noCluster() }, () => {
  let cluster: SmallCluster;

  before(async () => {
    cluster = await SmallCluster.open({}, { flags: ['--keep-api-pods'] });
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  const running = async (name: string) =>
    (await cluster.node.containersOf(name)).filter(({ state }) => state === 'CONTAINER_RUNNING');

  it('starts the pods with their secrets without the API server, and syncs with it once it is back', async () => {
    const { plane, node } = cluster;
    await plane.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'kept', namespace: 'default' },
      stringData: { word: 'secret' },
    });
    const env = [{ name: 'WORD', valueFrom: { secretKeyRef: { name: 'kept', key: 'word' } } }];
    await plane.apply(pod('kept', podSpec([container('main', { env })])));
    await podIs(plane, 'kept', 'ready', isReady);
    const copies = join(node.rootDir, 'api-copies');
    await patiently('the copies to be written', async () => {
      const all = await Promise.all(
        ['pods', 'objects', 'services'].map((name) => namesIn(join(copies, name))),
      );
      return all.every((names) => names.length > 0) ? true : undefined;
    });
    const [copy = ''] = await namesIn(join(copies, 'objects'));
    assert.equal((await stat(join(copies, 'objects', copy))).mode & 0o777, 0o600);

    await node.stop();
    await plane.stopApiServer();
    for (const { id } of await running('kept'))
      await node.cri.stopContainer({ containerId: id, timeout: 0n }, signal);
    assert.deepEqual(await running('kept'), []);
    await node.start();
    const [again] = await patiently('the pod to run from its copy', async () => {
      const found = await running('kept');
      return found.length > 0 ? found : undefined;
    });
    const { stdout } = await node.cri.execSync(
      { containerId: again?.id ?? '', cmd: ['sh', '-c', 'echo $WORD'], timeout: 10n },
      signal,
    );
    assert.equal(Buffer.from(stdout).toString().trim(), 'secret');

    await plane.startApiServer();
    await podIs(
      plane,
      'kept',
      'ready after another start',
      (found) => isReady(found) && found.status?.containerStatuses?.[0]?.restartCount === 1,
    );
    assert.deepEqual(
      (await running('kept')).map(({ id }) => id),
      [again?.id],
    );
    await plane.kubectl('delete', 'pod', 'kept', '--wait=false');
    await podIsGone(plane, 'kept');
    await patiently('its copy to go', async () =>
      (await namesIn(join(copies, 'pods'))).length === 0 ? true : undefined,
    );
  });
});

async function namesIn(directory: string): Promise<readonly string[]> {
  return await readdir(directory).catch(() => []);
}
