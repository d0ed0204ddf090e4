import { didYouMean, formatDurationMs, tryParseDurationMs } from '../lib/index.ts';
import { evictionSignals, isEvictionSignal, parseThreshold } from './eviction.ts';
import { keyPath } from './findings.ts';
import type { Rule, RuleReport } from './validate.ts';

const maps = ['evictionHard', 'evictionSoft', 'evictionSoftGracePeriod', 'evictionMinimumReclaim'] as const;

const signals: Rule = {
  reads: [],
  check({ config }, report) {
    for (const name of maps) {
      for (const signal of Object.keys(config[name])) {
        if (isEvictionSignal(signal)) continue;
        report.problem(keyPath(name, signal), `is not a known signal${didYouMean(signal, evictionSignals)}`);
      }
    }
  },
};

const amounts: Rule = {
  reads: [],
  check({ config }, report) {
    for (const name of ['evictionHard', 'evictionSoft'] as const) {
      for (const [signal, text] of Object.entries(config[name])) {
        checkAmount(keyPath(name, signal), text, 'positive', report);
        if (signal.startsWith('containerfs.')) {
          report.warning(
            keyPath(name, signal),
            'has no effect: it follows nodefs or imagefs, wherever containers are',
          );
        }
      }
    }
  },
};

const reclaims: Rule = {
  reads: [],
  check({ config }, report) {
    for (const [signal, text] of Object.entries(config.evictionMinimumReclaim)) {
      checkAmount(keyPath('evictionMinimumReclaim', signal), text, 'not negative', report);
    }
  },
};

/**
 * Checks an amount. Where it must be `positive`, a quantity of zero is an error, because such a
 * threshold would never be reached; 0% is accepted, because it disables the threshold explicitly.
 */
function checkAmount(
  field: string,
  text: string,
  size: 'positive' | 'not negative',
  report: RuleReport,
): void {
  const value = parseThreshold(text);
  const current = `current value is ${JSON.stringify(text)}`;
  if (value === undefined)
    report.problem(field, `must be a quantity such as 100Mi or a share such as 10%: ${current}`);
  else if ('percent' in value) {
    if (value.percent < 0 || value.percent > 100)
      report.problem(field, `must be from 0% to 100%: ${current}`);
  } else if (value.quantity.nanos < 0n || (size === 'positive' && value.quantity.nanos === 0n)) {
    report.problem(field, `must be ${size === 'positive' ? 'more than 0' : '0 or more'}: ${current}`);
  }
}

const graces: Rule = {
  reads: ['evictionSoft', 'evictionSoftGracePeriod'],
  check({ config }, report) {
    for (const signal of Object.keys(config.evictionSoft)) {
      if (Object.hasOwn(config.evictionSoftGracePeriod, signal)) continue;
      report.problem(
        keyPath('evictionSoft', signal),
        `needs a grace period in evictionSoftGracePeriod[${signal}]`,
      );
    }
    for (const [signal, text] of Object.entries(config.evictionSoftGracePeriod)) {
      if ((tryParseDurationMs(text) ?? -1) >= 0) continue;
      const must = 'must be a duration of 0s or more, such as 1m30s';
      report.problem(
        keyPath('evictionSoftGracePeriod', signal),
        `${must}: current value is ${JSON.stringify(text)}`,
      );
    }
  },
};

export const evictionRules: readonly Rule[] = [signals, amounts, reclaims, graces];

const diskThresholds: Rule = {
  reads: ['imageGCLowThresholdPercent', 'imageGCHighThresholdPercent'],
  check({ config }, report) {
    const { imageGCLowThresholdPercent: low, imageGCHighThresholdPercent: high } = config;
    if (low < high) return;
    report.problem(
      'imageGCLowThresholdPercent',
      `must be less than imageGCHighThresholdPercent (${high}): current value is ${low}`,
    );
  },
};

const ages: Rule = {
  reads: ['imageMinimumGCAge', 'imageMaximumGCAge'],
  check({ config }, report) {
    const { imageMinimumGCAgeMs: least, imageMaximumGCAgeMs: most } = config;
    if (most === 0 || most > least) return;
    const must = `must be more than imageMinimumGCAge (${formatDurationMs(least)})`;
    report.problem('imageMaximumGCAge', `${must}: current value is ${formatDurationMs(most)}`);
  },
};

const parallelPulls: Rule = {
  reads: ['serializeImagePulls', 'maxParallelImagePulls'],
  check({ config }, report) {
    const most = config.maxParallelImagePulls ?? 1;
    if (!config.serializeImagePulls || most <= 1) return;
    report.problem(
      'maxParallelImagePulls',
      `must be 1 while serializeImagePulls is true: current value is ${most}`,
    );
  },
};

const credentials: Rule = {
  reads: ['imagePullCredentialsVerificationPolicy', 'preloadedImagesVerificationAllowlist', 'featureGates'],
  check({ config, gates }, report) {
    const policy = config.imagePullCredentialsVerificationPolicy;
    const listed = config.preloadedImagesVerificationAllowlist.length > 0;
    if (!gates.enabled('KubeletEnsureSecretPulledImages')) {
      const needs = 'needs the feature gate KubeletEnsureSecretPulledImages, which is off';
      if (policy !== '') report.problem('imagePullCredentialsVerificationPolicy', needs);
      if (listed) report.problem('preloadedImagesVerificationAllowlist', needs);
    } else if (listed && policy !== 'NeverVerifyAllowlistedImages') {
      const needs = 'needs imagePullCredentialsVerificationPolicy to be NeverVerifyAllowlistedImages';
      report.problem('preloadedImagesVerificationAllowlist', `${needs}: current value is ${policy}`);
    }
  },
};

const allowlist: Rule = {
  reads: ['preloadedImagesVerificationAllowlist'],
  check({ config }, report) {
    config.preloadedImagesVerificationAllowlist.forEach((pattern, index) => {
      if (isImagePattern(pattern)) return;
      const must = 'must be an image without tag and digest, or a path that ends in /*';
      report.problem(
        keyPath('preloadedImagesVerificationAllowlist', index),
        `${must}: current value is ${JSON.stringify(pattern)}`,
      );
    });
  },
};

/**
 * Whether the pattern can match an image. A registry may have a port if a path follows; a colon
 * after the last slash is a tag.
 */
function isImagePattern(pattern: string): boolean {
  const name = pattern.endsWith('/*') ? pattern.slice(0, -2) : pattern;
  return (
    /^[A-Za-z0-9][A-Za-z0-9._-]*(:\d+(?=\/|$))?(\/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$/.test(name) &&
    (pattern.endsWith('/*') || !/:\d+$/.test(name))
  );
}

export const imageRules: readonly Rule[] = [diskThresholds, ages, parallelPulls, credentials, allowlist];
