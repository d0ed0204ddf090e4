import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../pods/index.ts';
import { checkStreamUrl } from './stream-url.ts';

const pods = {
  getPods: () => [
    {
      metadata: { name: 'p', namespace: 'default', uid: 'u' },
      spec: { containers: [{ name: 'main', ports: [{ containerPort: 80, hostPort: 42_443 }] }] },
    } as unknown as Pod,
  ],
};

test('rejects a stream whose port is redirected to a pod', () => {
  assert.throws(() => checkStreamUrl('http://127.0.0.1:42443/exec/token', pods), {
    code: 'STREAM_REFUSED',
    message: /host port of pod default\/p/,
  });
});

test('returns the URL of any other stream', () => {
  for (const url of ['http://127.0.0.1:42444/exec/token', 'not a url'])
    assert.equal(checkStreamUrl(url, pods), url);
});
