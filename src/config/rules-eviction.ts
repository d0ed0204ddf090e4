import { didYouMean, tryParseDurationMs } from '../lib/index.ts';
import { evictionSignals, isEvictionSignal, parseThreshold } from './eviction.ts';
import { keyPath } from './origins.ts';
import type { Report, Rule } from './validate.ts';

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

/** A threshold of nothing would never act and is a mistake, except as 0%, which says so on purpose. */
function checkAmount(field: string, text: string, size: 'positive' | 'not negative', report: Report): void {
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
