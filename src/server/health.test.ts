import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type HealthCheck, healthCheckResponse, healthResponse } from './health.ts';

const well: HealthCheck = { name: 'ping', problem: () => undefined };
const ill: HealthCheck = { name: 'syncloop', problem: () => 'sync Loop took longer than expected' };

test('responds with ok, and with the list of checks when the request is verbose', () => {
  assert.deepEqual(healthResponse([well], new URLSearchParams()), { status: 200, body: 'ok' });
  assert.deepEqual(healthResponse([well], new URLSearchParams('verbose')), {
    status: 200,
    body: '[+]ping ok\nhealthz check passed\n',
  });
});

test('lists all health checks without reasons when one fails', () => {
  assert.deepEqual(healthResponse([well, ill], new URLSearchParams()), {
    status: 500,
    body: '[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n',
  });
});

test('adds the reasons of failed health checks on endpoints that show them', () => {
  assert.deepEqual(healthResponse([well, ill], new URLSearchParams(), { name: 'readyz', reasons: 'shown' }), {
    status: 500,
    body: '[+]ping ok\n[-]syncloop failed: sync Loop took longer than expected\nreadyz check failed\n',
  });
});

test('excludes a health check by name, and warns of an unknown name', () => {
  assert.deepEqual(healthResponse([well, ill], new URLSearchParams('verbose&exclude=syncloop&exclude=x')), {
    status: 200,
    body: '[+]ping ok\n[+]syncloop excluded: ok\nwarn: some health checks cannot be excluded: no matches for "x"\nhealthz check passed\n',
  });
});

test('shows the reason when the path of a single health check is requested', () => {
  assert.deepEqual(healthCheckResponse([ill], 'syncloop'), {
    status: 500,
    body: 'internal server error: sync Loop took longer than expected\n',
  });
  assert.equal(healthCheckResponse([well], 'other'), undefined);
});
