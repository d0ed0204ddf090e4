import type { PlainAnswer } from '../http/front-deps.ts';
import type { TokenDesk } from '../kinds/index.ts';
import { jsonWebKeys, openidConfiguration, type TokenKeys } from './token-keys.ts';

export interface IssuerPagesDeps {
  readonly tokens: Pick<TokenDesk, 'issuer'>;
  readonly keys: TokenKeys;
  /** Where the server answers; asked with each request, as it is known only once it does. */
  readonly server: () => string;
}

/** What others need to know tokens of ours by themselves, by path. */
export function issuerPages({
  tokens,
  keys,
  server,
}: IssuerPagesDeps): Readonly<Record<string, () => PlainAnswer>> {
  const page = (type: string, value: object): PlainAnswer => ({
    status: 200,
    headers: { 'content-type': type, 'cache-control': 'public, max-age=3600' },
    body: JSON.stringify(value),
  });
  return {
    '/.well-known/openid-configuration': () =>
      page('application/json', openidConfiguration(tokens.issuer, server(), keys)),
    '/openid/v1/jwks': () => page('application/jwk-set+json', jsonWebKeys(keys)),
  };
}
