import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readCalls } from '../testdata/kinds/recorded.ts';
import { ControlPlane } from './control-plane.ts';
import { realAnswer } from './kind-answers.ts';
import { clusterAssets, noCluster } from './programs.ts';

/** Responses with `managedFields` contain the time of the request, so they differ each time. */
const timed = /"managedFields":/;

it('a real API server responds to requests for other kinds than pods as recorded', {
  skip: noCluster(),
}, async () => {
  await using plane = await ControlPlane.open(clusterAssets());
  for (const call of readCalls()) {
    const response = await realAnswer(plane, call);
    const what = `${call.method} ${call.resource} ${JSON.stringify(call.body)}`;
    if (timed.test(call.answer.message ?? '')) assert.equal(response.code, call.answer.code, what);
    else assert.deepEqual(response, call.answer, what);
  }
});
