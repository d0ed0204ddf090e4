import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Node } from '../../kinds/index.ts';
import { type CsiClusterLink, csiApi } from './csi-attach.ts';

const { signal } = new AbortController();
const volume = 'kubernetes.io/csi/d.example^disk';
const attached: Node['status'] = { volumesAttached: [{ name: volume, devicePath: '' }] };
const inUse: Node['status'] = { ...attached, volumesInUse: [volume] };

/**
 * Calls isListed with a cached node status and the status that the API server returns; also counts
 * the requests.
 */
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

describe('isListed of a CSI volume', () => {
  it("returns true when the API server's node status lists the volume as attached and in use", async () => {
    assert.deepEqual(await listed(inUse, inUse), { answer: true, questions: 1 });
  });

  it('returns false before volumesInUse lists the volume, because the controller may still detach it', async () => {
    assert.deepEqual(await listed(attached, attached), { answer: false, questions: 1 });
    const other = { ...attached, volumesInUse: ['kubernetes.io/csi/d.example^other'] };
    assert.deepEqual(await listed(inUse, other), { answer: false, questions: 1 });
  });

  it("returns false when the cached node status lists the volume as attached but the API server's does not", async () => {
    assert.deepEqual(await listed(inUse, { volumesInUse: [volume] }), { answer: false, questions: 1 });
  });

  it('returns false without a request while the cached node status does not list the volume as attached', async () => {
    assert.deepEqual(await listed(undefined, inUse), { answer: false, questions: 0 });
    assert.deepEqual(await listed({ volumesInUse: [volume] }, inUse), { answer: false, questions: 0 });
  });
});
