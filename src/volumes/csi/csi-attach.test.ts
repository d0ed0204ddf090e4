import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Node } from '../../kinds/index.ts';
import { type CsiClusterLink, csiApi } from './csi-attach.ts';

const { signal } = new AbortController();
const volume = 'kubernetes.io/csi/d.example^disk';
const attached: Node['status'] = { volumesAttached: [{ name: volume, devicePath: '' }] };
const inUse: Node['status'] = { ...attached, volumesInUse: [volume] };

/** What is known of the node, and what the API would answer. */
function listed(known: Node['status'] | undefined, asked: Node['status']) {
  let questions = 0;
  const nodeOf = (status: Node['status']): Node => ({ metadata: { name: 'n1' }, status });
  const link = {
    node: () => known && nodeOf(known),
    fetchNode: async () => {
      questions++;
      return nodeOf(asked);
    },
  } satisfies Partial<CsiClusterLink> as unknown as CsiClusterLink;
  return csiApi(link)
    .isListed(volume, signal)
    .then((response) => ({ answer: response, questions }));
}

describe('a volume is listed for a node', () => {
  it('that the API says to have it attached, and to have it in use', async () => {
    assert.deepEqual(await listed(inUse, inUse), { answer: true, questions: 1 });
  });

  it('but not before the cluster knows that it is in use, and may take it away again', async () => {
    assert.deepEqual(await listed(attached, attached), { answer: false, questions: 1 });
    const other = { ...attached, volumesInUse: ['kubernetes.io/csi/d.example^other'] };
    assert.deepEqual(await listed(inUse, other), { answer: false, questions: 1 });
  });

  it('but not by what was known and is so no more', async () => {
    assert.deepEqual(await listed(inUse, { volumesInUse: [volume] }), { answer: false, questions: 1 });
  });

  it('but not while nothing is known, and then nobody is asked', async () => {
    assert.deepEqual(await listed(undefined, inUse), { answer: false, questions: 0 });
    assert.deepEqual(await listed({ volumesInUse: [volume] }, inUse), { answer: false, questions: 0 });
  });
});
