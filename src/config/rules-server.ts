import { tryParseQuantity } from '../lib/index.ts';
import { fieldPath, keyPath } from './findings.ts';
import type { Rule } from './validate.ts';

/** Settings that allow unauthenticated access. They are accepted with a warning. */
const insecureServers: Rule = {
  reads: ['authentication', 'authorization', 'readOnlyPort'],
  check({ config }, report) {
    if (config.authentication.anonymous.enabled) {
      report.warning(
        'authentication.anonymous.enabled',
        'lets anybody reach the server without a credential',
      );
    }
    if (config.authorization.mode === 'AlwaysAllow') {
      report.warning('authorization.mode', 'AlwaysAllow lets every client run commands in every pod');
    }
    if (config.readOnlyPort !== 0) {
      report.warning(
        'readOnlyPort',
        'shows pods and their environment to anybody without asking who they are',
      );
    }
  },
};

const certificatePair: Rule = {
  reads: ['tlsCertFile', 'tlsPrivateKeyFile'],
  check({ config }, report) {
    const { tlsCertFile, tlsPrivateKeyFile } = config;
    if (tlsCertFile !== '' && tlsPrivateKeyFile === '') {
      report.problem('tlsCertFile', 'must be given together with tlsPrivateKeyFile, which is empty');
    }
    if (tlsPrivateKeyFile !== '' && tlsCertFile === '') {
      report.problem('tlsPrivateKeyFile', 'must be given together with tlsCertFile, which is empty');
    }
  },
};

const serverBootstrap: Rule = {
  reads: ['serverTLSBootstrap'],
  check({ config, gates }, report) {
    if (config.serverTLSBootstrap && !gates.enabled('RotateKubeletServerCertificate')) {
      report.problem(
        'serverTLSBootstrap',
        'needs the feature gate RotateKubeletServerCertificate, which is off',
      );
    }
  },
};

const curves: Rule = {
  reads: ['tlsCurvePreferences'],
  check({ config }, report) {
    config.tlsCurvePreferences.forEach((id, index) => {
      const field = keyPath('tlsCurvePreferences', index);
      if (!tlsCurves.has(id)) {
        const known = [...tlsCurves].map(([number, name]) => `${number} (${name})`).join(', ');
        report.problem(field, `must be one of ${known}: current value is ${id}`);
      } else if (config.tlsCurvePreferences.indexOf(id) !== index) {
        report.problem(field, `must not be listed twice: current value is ${id}`);
      }
    });
  },
};

const weakTls: Rule = {
  reads: ['tlsMinVersion', 'tlsCipherSuites'],
  check({ config }, report) {
    const { tlsMinVersion, tlsCipherSuites } = config;
    if (weakTlsVersions.has(tlsMinVersion))
      report.warning('tlsMinVersion', `${tlsMinVersion} is broken and unsafe`);
    if (tlsMinVersion === 'VersionTLS13' && tlsCipherSuites.length > 0) {
      report.warning('tlsCipherSuites', 'have no effect as TLS 1.3 does not let them be chosen');
    }
    const weak: readonly string[] = weakCiphers;
    tlsCipherSuites.forEach((suite, index) => {
      if (weak.includes(suite)) report.warning(keyPath('tlsCipherSuites', index), `${suite} is unsafe`);
    });
  },
};

const logQuery: Rule = {
  reads: ['enableSystemLogQuery', 'enableSystemLogHandler'],
  check({ config, gates }, report) {
    if (!config.enableSystemLogQuery) return;
    if (!config.enableSystemLogHandler) {
      report.problem(
        'enableSystemLogQuery',
        'needs enableSystemLogHandler to be true: current value is false',
      );
    }
    if (!gates.enabled('NodeLogQuery')) {
      report.problem('enableSystemLogQuery', 'needs the feature gate NodeLogQuery, which is off');
    }
  },
};

export const serverRules: readonly Rule[] = [
  insecureServers,
  certificatePair,
  serverBootstrap,
  curves,
  weakTls,
  logQuery,
];

const vmodule: Rule = {
  reads: ['logging'],
  check({ config }, report) {
    const { format, vmodule: patterns } = config.logging;
    if (patterns.length > 0 && format !== 'text') {
      report.problem('logging.vmodule', `needs logging.format to be text: current value is ${format}`);
    }
    patterns.forEach(({ filePattern }, index) => {
      const field = fieldPath(keyPath('logging.vmodule', index), 'filePattern');
      if (filePattern === '') report.problem(field, 'must not be empty');
      if (/[=,]/.test(filePattern)) {
        report.problem(
          field,
          `must not contain = or a comma: current value is ${JSON.stringify(filePattern)}`,
        );
      }
    });
  },
};

const alphaOptions: Rule = {
  reads: ['logging', 'featureGates'],
  check({ config, gates }, report) {
    if (gates.enabled('LoggingAlphaOptions')) return;
    const needs = 'needs the feature gate LoggingAlphaOptions, which is off';
    for (const format of ['text', 'json'] as const) {
      const { splitStream, infoBufferSize } = config.logging.options[format];
      if (splitStream) report.problem(`logging.options.${format}.splitStream`, needs);
      if (infoBufferSize.nanos !== 0n) report.problem(`logging.options.${format}.infoBufferSize`, needs);
    }
  },
};

const logSize: Rule = {
  reads: ['containerLogMaxSize'],
  check({ config }, report) {
    const size = tryParseQuantity(config.containerLogMaxSize);
    const current = `current value is ${JSON.stringify(config.containerLogMaxSize)}`;
    if (size === undefined)
      report.problem('containerLogMaxSize', `must be a quantity such as 10Mi: ${current}`);
    else if (size.nanos === 0n)
      report.warning('containerLogMaxSize', `has logs grow for ever, as an amount below 0 does: ${current}`);
  },
};

export const loggingRules: readonly Rule[] = [vmodule, alphaOptions, logSize];

/**
 * The allowed names of TLS versions, cipher suites and key exchanges, and which of them are weak.
 */

export const tlsVersions = ['VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'] as const;

/** TLS versions below 1.2 are insecure: they are accepted with a warning. */
const weakTlsVersions: ReadonlySet<string> = new Set(['VersionTLS10', 'VersionTLS11']);

export const strongCiphers = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA',
  'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA',
  'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305',
  'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256',
  'TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA',
  'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA',
  'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305',
  'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256',
] as const;

export const weakCiphers = [
  'TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256',
  'TLS_ECDHE_ECDSA_WITH_RC4_128_SHA',
  'TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA',
  'TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256',
  'TLS_ECDHE_RSA_WITH_RC4_128_SHA',
  'TLS_RSA_WITH_3DES_EDE_CBC_SHA',
  'TLS_RSA_WITH_AES_128_CBC_SHA',
  'TLS_RSA_WITH_AES_128_CBC_SHA256',
  'TLS_RSA_WITH_AES_128_GCM_SHA256',
  'TLS_RSA_WITH_AES_256_CBC_SHA',
  'TLS_RSA_WITH_AES_256_GCM_SHA384',
  'TLS_RSA_WITH_RC4_128_SHA',
] as const;

/** The TLS identifiers of key exchanges and their names. */
const tlsCurves: ReadonlyMap<number, string> = new Map([
  [23, 'P-256'],
  [24, 'P-384'],
  [25, 'P-521'],
  [29, 'X25519'],
  [4587, 'SecP256r1MLKEM768'],
  [4588, 'X25519MLKEM768'],
  [4589, 'SecP384r1MLKEM1024'],
]);
