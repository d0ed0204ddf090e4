import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type HealthCheck, healthCheckResponse, healthResponse } from './health.ts';

const well: HealthCheck = { name: 'ping', problem: () => undefined };
const ill: HealthCheck = { name: 'syncloop', problem: () => 'sync Loop took longer than expected' };

test('returns ok, with the checks when verbose', () => {
  assert.deepEqual(healthResponse([well], new URLSearchParams()), { status: 200, body: 'ok' });
  assert.deepEqual(healthResponse([well], new URLSearchParams('verbose')), {
    status: 200,
    body: '[+]ping ok\nhealthz check passed\n',
  });
});

test('lists all checks without reasons when one fails', () => {
  assert.deepEqual(healthResponse([well, ill], new URLSearchParams()), {
    status: 500,
    body: '[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n',
  });
});

test('adds the reasons where they are shown', () => {
  assert.deepEqual(healthResponse([well, ill], new URLSearchParams(), { name: 'readyz', reasons: 'shown' }), {
    status: 500,
    body: '[+]ping ok\n[-]syncloop failed: sync Loop took longer than expected\nreadyz check failed\n',
  });
});

test('excludes a check, and warns of an unknown one', () => {
  assert.deepEqual(healthResponse([well, ill], new URLSearchParams('verbose&exclude=syncloop&exclude=x')), {
    status: 200,
    body: '[+]ping ok\n[+]syncloop excluded: ok\nwarn: some health checks cannot be excluded: no matches for "x"\nhealthz check passed\n',
  });
});

test('shows the reason of a single check', () => {
  assert.deepEqual(healthCheckResponse([ill], 'syncloop'), {
    status: 500,
    body: 'internal server error: sync Loop took longer than expected\n',
  });
  assert.equal(healthCheckResponse([well], 'other'), undefined);
});
