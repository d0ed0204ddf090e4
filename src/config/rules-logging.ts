import { tryParseQuantity } from '../lib/index.ts';
import { fieldPath, keyPath } from './origins.ts';
import type { Rule } from './validate.ts';

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
