import { getCiphers, type SecureVersion } from 'node:tls';
import { KubelingError } from '../lib/index.ts';

/** The TLS settings of the kubelet's configuration. */
export interface TlsSettings {
  /** Minimum TLS version; empty for TLS 1.2. */
  readonly minVersion: string;
  /** IANA names of cipher suites; empty for the default strong suites. */
  readonly cipherSuites: readonly string[];
  /** IANA numbers of key exchange groups, best first; empty for the defaults. */
  readonly curves: readonly number[];
}

/** TLS settings with the names that OpenSSL uses. */
export interface TlsProfile {
  readonly minVersion: SecureVersion;
  readonly ciphers: string;
  readonly ecdhCurve: string;
  /** Configured cipher suites that this machine does not support. */
  readonly unavailable: readonly string[];
}

const versions: Readonly<Record<string, SecureVersion>> = {
  '': 'TLSv1.2',
  VersionTLS10: 'TLSv1',
  VersionTLS11: 'TLSv1.1',
  VersionTLS12: 'TLSv1.2',
  VersionTLS13: 'TLSv1.3',
};

/** The three suites of TLS 1.3 cannot be configured and are always enabled. */
const suitesOf13 = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'];

const strongSuites: Readonly<Record<string, string>> = {
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: 'ECDHE-ECDSA-AES128-SHA',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: 'ECDHE-RSA-AES128-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: 'ECDHE-ECDSA-AES256-SHA',
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: 'ECDHE-RSA-AES256-SHA',
};

const suites: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...strongSuites,
    // Legacy names of two cipher suites.
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305: 'ECDHE-ECDSA-CHACHA20-POLY1305',
    TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305: 'ECDHE-RSA-CHACHA20-POLY1305',
    TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: 'ECDHE-ECDSA-AES128-SHA256',
    TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: 'ECDHE-RSA-AES128-SHA256',
    TLS_ECDHE_ECDSA_WITH_RC4_128_SHA: 'ECDHE-ECDSA-RC4-SHA',
    TLS_ECDHE_RSA_WITH_RC4_128_SHA: 'ECDHE-RSA-RC4-SHA',
    TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA: 'ECDHE-RSA-DES-CBC3-SHA',
    TLS_RSA_WITH_3DES_EDE_CBC_SHA: 'DES-CBC3-SHA',
    TLS_RSA_WITH_AES_128_CBC_SHA: 'AES128-SHA',
    TLS_RSA_WITH_AES_128_CBC_SHA256: 'AES128-SHA256',
    TLS_RSA_WITH_AES_128_GCM_SHA256: 'AES128-GCM-SHA256',
    TLS_RSA_WITH_AES_256_CBC_SHA: 'AES256-SHA',
    TLS_RSA_WITH_AES_256_GCM_SHA384: 'AES256-GCM-SHA384',
    TLS_RSA_WITH_RC4_128_SHA: 'RC4-SHA',
  }),
);

const groups: ReadonlyMap<number, string> = new Map([
  [23, 'P-256'],
  [24, 'P-384'],
  [25, 'P-521'],
  [29, 'X25519'],
  [4587, 'SecP256r1MLKEM768'],
  [4588, 'X25519MLKEM768'],
  [4589, 'SecP384r1MLKEM1024'],
]);

/** Converts the configured TLS settings. Throws TLS_SETTINGS with all problems. */
export function tlsProfile({ minVersion, cipherSuites, curves }: TlsSettings): TlsProfile {
  const version = Object.hasOwn(versions, minVersion) ? versions[minVersion] : undefined;
  const invalid = [
    ...(version === undefined ? [`unknown TLS version ${JSON.stringify(minVersion)}`] : []),
    ...cipherSuites
      .filter((name) => !isSuite(name))
      .map((name) => `unknown cipher suite ${JSON.stringify(name)}`),
    ...curves.filter((id) => !groups.has(id)).map((id) => `unknown curve ${id}`),
  ];
  const chosen = chooseSuites(cipherSuites);
  if (invalid.length === 0 && chosen.usable.length === 0 && version !== 'TLSv1.3') {
    invalid.push(`none of the cipher suites ${cipherSuites.join(', ')} is supported here`);
  }
  if (version === undefined || invalid.length > 0) {
    throw new KubelingError('TLS_SETTINGS', `Cannot use the TLS settings: ${invalid.join('; ')}`);
  }
  return {
    minVersion: version,
    ciphers: cipherText(chosen.usable, version),
    ecdhCurve: curves.length === 0 ? 'auto' : curves.map((id) => groups.get(id)).join(':'),
    unavailable: chosen.unavailable,
  };
}

function isSuite(name: string): boolean {
  return suites.has(name) || suitesOf13.includes(name);
}

interface ChosenSuites {
  readonly usable: readonly string[];
  readonly unavailable: readonly string[];
}

function chooseSuites(names: readonly string[]): ChosenSuites {
  if (names.length === 0) return { usable: [...suitesOf13, ...Object.values(strongSuites)], unavailable: [] };
  const able = new Set(getCiphers());
  const older = names.filter((name) => !suitesOf13.includes(name));
  const isAble = (name: string) => able.has((suites.get(name) ?? '').toLowerCase());
  const usable = new Set(older.filter(isAble).map((name) => suites.get(name) ?? ''));
  const with13 = usable.size > 0 || older.length < names.length ? suitesOf13 : [];
  return { usable: [...with13, ...usable], unavailable: older.filter((name) => !isAble(name)) };
}

/**
 * TLS 1.0 and 1.1 need a lower OpenSSL security level, because their signatures are otherwise
 * rejected as too weak.
 */
function cipherText(usable: readonly string[], version: SecureVersion): string {
  const all = usable.length > 0 ? usable : suitesOf13;
  return [...all, ...(version === 'TLSv1' || version === 'TLSv1.1' ? ['@SECLEVEL=0'] : [])].join(':');
}
