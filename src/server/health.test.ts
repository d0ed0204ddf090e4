import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkResponse, type HealthCheck, healthResponse } from './health.ts';

const well: HealthCheck = { name: 'ping', problem: () => undefined };
const ill: HealthCheck = { name: 'syncloop', problem: () => 'sync Loop took longer than expected' };

test('all well is ok, with the checks when asked', () => {
  assert.deepEqual(healthResponse([well], new URLSearchParams()), { status: 200, body: 'ok' });
  assert.deepEqual(healthResponse([well], new URLSearchParams('verbose')), {
    status: 200,
    body: '[+]ping ok\nhealthz check passed\n',
  });
});

test('one that fails shows all checks but not why', () => {
  assert.deepEqual(healthResponse([well, ill], new URLSearchParams()), {
    status: 500,
    body: '[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n',
  });
});

test('where reasons are shown each failed check says why', () => {
  assert.deepEqual(healthResponse([well, ill], new URLSearchParams(), { name: 'readyz', reasons: 'shown' }), {
    status: 500,
    body: '[+]ping ok\n[-]syncloop failed: sync Loop took longer than expected\nreadyz check failed\n',
  });
});

test('a check can be left out, and an unknown one is told', () => {
  assert.deepEqual(healthResponse([well, ill], new URLSearchParams('verbose&exclude=syncloop&exclude=x')), {
    status: 200,
    body: '[+]ping ok\n[+]syncloop excluded: ok\nwarn: some health checks cannot be excluded: no matches for "x"\nhealthz check passed\n',
  });
});

test('one check alone says why', () => {
  assert.deepEqual(checkResponse([ill], 'syncloop'), {
    status: 500,
    body: 'internal server error: sync Loop took longer than expected\n',
  });
  assert.equal(checkResponse([well], 'other'), undefined);
});
