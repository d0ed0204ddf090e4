import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { actionPort, actionRequest } from './http-action.ts';

const container = { ports: [{ name: 'web', containerPort: 8080 }] };

describe('HTTP actions of probes and hooks', () => {
  it('finds the port of an HTTP action by name, number or number as text', () => {
    assert.equal(actionPort(80, container), 80);
    assert.equal(actionPort('web', container), 8080);
    assert.equal(actionPort('81', container), 81);
    assert.throws(() => actionPort('api', container), /port api not found/);
    for (const port of [0, 65_536, -1, '0'])
      assert.throws(() => actionPort(port, container), /invalid port number/);
  });

  it('sends an HTTP action to the pod unless the action names a host', () => {
    const { scheme, host, port, target } = actionRequest({ port: 'web' }, container, '10.0.0.7', 'me');
    assert.deepEqual([scheme, host, port, target], ['http', '10.0.0.7', 8080, '/']);
    const named = actionRequest({ port: 1, host: 'db', scheme: 'HTTPS', path: 'x?y' }, {}, '10.0.0.7', 'me');
    assert.deepEqual([named.scheme, named.host, named.target], ['https', 'db', '/x?y']);
  });

  it('sends the headers of an HTTP action, with default User-Agent and Accept', () => {
    const headersOf = (...httpHeaders: readonly { name: string; value: string }[]) =>
      actionRequest({ port: 1, httpHeaders }, {}, 'ip', 'me').headers;
    assert.deepEqual(headersOf(), [
      ['User-Agent', 'me'],
      ['Accept', '*/*'],
    ]);
    assert.deepEqual(headersOf({ name: 'accept', value: '' }, { name: 'user-agent', value: 'you' }), [
      ['user-agent', 'you'],
    ]);
    assert.deepEqual(
      headersOf({ name: 'X', value: '1' }, { name: 'X', value: '2' }, { name: 'Host', value: 'h' }).slice(
        0,
        3,
      ),
      [
        ['X', '1'],
        ['X', '2'],
        ['Host', 'h'],
      ],
    );
  });
});
