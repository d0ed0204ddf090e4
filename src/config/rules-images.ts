import { formatDurationMs } from '../lib/index.ts';
import { keyPath } from './origins.ts';
import type { Rule } from './validate.ts';

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

/** A registry may have a port and is then followed by a path; a colon after the last slash is a tag. */
function isImagePattern(pattern: string): boolean {
  const name = pattern.endsWith('/*') ? pattern.slice(0, -2) : pattern;
  return (
    /^[A-Za-z0-9][A-Za-z0-9._-]*(:\d+(?=\/|$))?(\/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$/.test(name) &&
    (pattern.endsWith('/*') || !/:\d+$/.test(name))
  );
}

export const imageRules: readonly Rule[] = [diskThresholds, ages, parallelPulls, credentials, allowlist];
