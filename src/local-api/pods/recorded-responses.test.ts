import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LocalPods } from '../../../test/fakes/local-pods.ts';
import {
  type RecordedAnswer,
  type RecordedChange,
  readRecording,
} from '../../../test/testdata/pods/recorded.ts';

/**
 * Pods for which the error messages differ from the recorded messages of kube-apiserver, as
 * docs/embedded-api-differences.md documents.
 */
const otherWords: ReadonlySet<string> = new Set([
  'privileged without escalation',
  'with a name of a seccomp profile that needs none',
  'with a claim of two names',
  'with a claim of no source',
]);

/** Drops repeated causes of a recorded error, because kube-apiserver reports some of them twice. */
function distinct({ causes, ...answer }: RecordedAnswer): RecordedAnswer {
  if (causes === undefined) return answer;
  const known = new Map(causes.map((cause) => [`${cause.field} ${cause.message}`, cause]));
  return { ...answer, causes: [...known.values()] };
}

describe('rejects pods with the recorded errors of kube-apiserver', () => {
  for (const { what, pod, answer } of readRecording('refused'))
    it(what, async () => {
      using api = new LocalPods();
      api.surround();
      const ours = await api.answer({ verb: 'create', body: pod, dryRun: 'yes' });
      if (!otherWords.has(what)) assert.deepEqual(ours, distinct(answer));
      else {
        assert.equal(ours.code, answer.code);
        const fields = ({ causes = [] }: RecordedAnswer) =>
          causes.map(({ field, reason }) => `${field} ${reason}`);
        assert.deepEqual(fields(ours), fields(answer));
      }
    });
});

describe('applies the recorded defaults of kube-apiserver', () => {
  for (const { what, pod, answer } of readRecording('accepted'))
    it(what, async () => {
      using api = new LocalPods();
      api.surround();
      assert.deepEqual(await api.answer({ verb: 'create', body: pod, dryRun: 'yes' }), answer);
    });
});

const patchKinds = {
  'application/strategic-merge-patch+json': 'strategic',
  'application/merge-patch+json': 'merge',
  'application/json-patch+json': 'json',
} as const;

async function changed({ pod, request }: RecordedChange): Promise<RecordedAnswer> {
  using api = new LocalPods();
  api.surround();
  api.do({ verb: 'create', body: pod });
  const { method, subresource, contentType, body } = request;
  const patch = patchKinds[contentType as keyof typeof patchKinds];
  return await api.answer({
    verb: method === 'POST' ? 'create' : 'patch',
    name: 'a',
    ...(subresource === '' ? {} : { subresource }),
    ...(patch && { patch }),
    body,
  });
}

describe('validates pod updates with the recorded results of kube-apiserver', () => {
  for (const change of readRecording('changes'))
    it(`${change.what} (${change.request.subresource || 'pod'})`, async () => {
      assert.deepEqual(await changed(change), distinct(change.answer));
    });
});
