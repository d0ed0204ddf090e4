import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiClient, ApiObject, Collection } from '../../api/index.ts';
import { apiReviews } from './api-reviews.ts';

const { signal } = new AbortController();

function answering(status: unknown) {
  const requests: { at: Collection; object: ApiObject }[] = [];
  const api = {
    create: async (at: Collection, object: ApiObject) => {
      requests.push({ at, object });
      return { ...object, ...(status === undefined ? {} : { status }) };
    },
  } as unknown as Pick<ApiClient, 'create'>;
  return { asked: requests, reviews: apiReviews(api) };
}

test('posts a TokenReview for a token', async () => {
  const user = { username: 'alice', uid: 'u', groups: ['g'], extra: { k: ['v'] } };
  const { asked, reviews } = answering({ authenticated: true, user });
  assert.deepEqual(await reviews.tokenReview('secret', signal), {
    authenticated: true,
    user: { name: 'alice', uid: 'u', groups: ['g'], extra: { k: ['v'] } },
    error: undefined,
  });
  assert.equal(asked[0]?.at.resource.plural, 'tokenreviews');
  assert.deepEqual(asked[0]?.object, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    metadata: {},
    spec: { token: 'secret' },
  });
});

test('posts a SubjectAccessReview for a verb on a subresource of the node', async () => {
  const { asked, reviews } = answering({ allowed: true });
  const user = { name: 'alice', groups: ['g'] };
  const spec = { user, verb: 'get', subresource: 'pods', name: 'n1' };
  assert.equal((await reviews.subjectAccessReview(spec, signal)).allowed, true);
  assert.deepEqual(JSON.parse(JSON.stringify(asked[0]?.object)), {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    metadata: {},
    spec: {
      resourceAttributes: {
        group: '',
        version: 'v1',
        resource: 'nodes',
        verb: 'get',
        subresource: 'pods',
        name: 'n1',
      },
      user: 'alice',
      groups: ['g'],
    },
  });
});

test('treats missing fields of a review as denied, and a response without status as an error', async () => {
  const { reviews } = answering({});
  assert.equal((await reviews.tokenReview('x', signal)).authenticated, false);
  const user = { name: 'a', groups: [] };
  const spec = { user, verb: 'get', subresource: 'pods', name: 'n1' };
  assert.equal((await reviews.subjectAccessReview(spec, signal)).allowed, false);
  await assert.rejects(answering(undefined).reviews.tokenReview('x', signal), { code: 'API_BAD_ANSWER' });
});
