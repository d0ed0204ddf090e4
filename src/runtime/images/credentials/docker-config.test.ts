import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseDockerCfg, parseDockerConfigJson } from './docker-config.ts';

const login = (username: string, password: string, email = '') => ({ username, password, email });
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('docker configs', () => {
  it('hold logins under auths, or right at the top in the older form', () => {
    const entry = { username: 'u', password: 'p', email: 'e' };
    const newer = parseDockerConfigJson(JSON.stringify({ auths: { 'r.io': entry }, HttpHeaders: {} }), 'x');
    assert.deepEqual([...newer], [['r.io', login('u', 'p', 'e')]]);
    assert.deepEqual(parseDockerCfg(JSON.stringify({ 'r.io': entry }), 'x'), newer);
    assert.equal(parseDockerConfigJson('{}', 'x').size, 0);
  });

  it('give user and password in auth, padded or not, which wins over the plain fields', () => {
    for (const text of [base64('user:p:w'), base64('user:p:w').replace(/=+$/, '')]) {
      const config = parseDockerCfg(JSON.stringify({ r: { auth: text, username: 'other' } }), 'x');
      assert.deepEqual(config.get('r'), login('user', 'p:w'));
    }
  });

  it('that are broken are refused without a word of what is in them', () => {
    for (const text of [
      '{"auths": sesame',
      '[]',
      '{"auths": ["sesame"]}',
      '{"auths": {"r": "sesame"}}',
      '{"auths": {"r": {"username": 7}}}',
      '{"auths": {"r": {"auth": "!!sesame"}}}',
      `{"auths": {"r": {"auth": "${base64('sesame')}"}}}`,
      '{"auths": {"r": {"auth": "c2VzYW1lO"}}}',
    ]) {
      assert.throws(
        () => parseDockerConfigJson(text, 'the secret ns/s'),
        (error: Error) =>
          /^Cannot use the credentials of the secret ns\/s/.test(error.message) &&
          !/sesame|c2Vz/.test(error.message),
        text,
      );
    }
  });
});
