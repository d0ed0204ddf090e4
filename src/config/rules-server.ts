import { keyPath } from './origins.ts';
import { tlsCurves, weakCiphers, weakTlsVersions } from './tls-names.ts';
import type { Rule } from './validate.ts';

/** Values that let strangers in. They work, as somebody wrote them, but never silently. */
const openDoors: Rule = {
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
  openDoors,
  certificatePair,
  serverBootstrap,
  curves,
  weakTls,
  logQuery,
];
