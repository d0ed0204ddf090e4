import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KindsRig } from '../../../test/fakes/kinds-rig.ts';
import {
  merged,
  type RecordedAnswer,
  type RecordedCall,
  readCalls,
  recordable,
} from '../../../test/testdata/kinds/recorded.ts';
import type { JsonObject } from '../../api/index.ts';
import { type ApiUser, StatusError } from '../api/index.ts';

function resourceOf(harness: KindsRig, { group, resource }: RecordedCall) {
  const found = harness.rig.catalogue.find(group, 'v1', resource);
  assert.ok(found, `${resource}.${group}`);
  return found.resource;
}

/** The user of all recorded requests. */
const admin: ApiUser = { name: 'admin', groups: ['system:masters', 'system:authenticated'] };

async function answerTo(harness: KindsRig, call: RecordedCall): Promise<RecordedAnswer> {
  const resource = resourceOf(harness, call);
  const { name, part } = call;
  const shown = call.method === 'POST' ? {} : await harness.rig.object('get', resource, { name: name ?? '' });
  const isToken = part === 'token';
  const decodedAs = isToken
    ? { ...resource, group: 'authentication.k8s.io', kind: 'TokenRequest' }
    : resource;
  const body = harness.decoded(decodedAs, merged(shown, call.body));
  const target = {
    ...(name === undefined ? {} : { name }),
    ...(part === undefined ? {} : { subresource: part }),
  };
  try {
    const response = await harness.rig.ask(call.method === 'POST' ? 'create' : 'update', resource, {
      ...target,
      body,
      user: admin,
    });
    assert.equal(response.kind, 'object');
    return recordable(response.code, (response as unknown as { readonly object: JsonObject }).object);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return recordable(error.status.code, { ...error.status });
  }
}

test('responds like the kube-apiserver whose responses were recorded, except for documented differences', async () => {
  using harness = new KindsRig();
  await harness.create(resourceOf(harness, { group: '', resource: 'serviceaccounts' } as RecordedCall), {
    metadata: { name: 'default' },
  });
  for (const call of readCalls()) {
    const ours = await answerTo(harness, call);
    const what = `${call.method} ${call.resource} ${JSON.stringify(call.body)}`;
    if (call.differs === undefined) assert.deepEqual(ours, call.answer, what);
    else assert.notDeepEqual(ours, call.answer, `${what} no longer differs: remove it from the differences`);
  }
});
