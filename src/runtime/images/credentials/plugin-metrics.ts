import type { MetricRegistry } from '../../../lib/index.ts';
import type { PluginObserver } from './plugin-provider.ts';

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Make one for a registry; the fingerprint is that of the configuration the plugins come from. */
export function pluginMetrics(registry: MetricRegistry, fingerprint: string): PluginObserver {
  const labels = ['plugin_name'] as const;
  const errors = registry.counter({
    name: 'kubelet_credential_provider_plugin_errors_total',
    help: 'Runs of a credential provider plugin that gave nothing usable',
    labels,
  });
  const durations = registry.histogram({
    name: 'kubelet_credential_provider_plugin_duration',
    help: 'How long runs of a credential provider plugin took, in seconds',
    labels,
    buckets,
  });
  registry
    .gauge({
      name: 'kubelet_credential_provider_config_info',
      help: 'The fingerprint of the configuration of credential provider plugins; always 1.',
      labels: ['hash'],
    })
    .with({ hash: fingerprint })
    .set(1);
  return {
    ran(plugin, ms, outcome) {
      durations.with({ plugin_name: plugin }).observe(ms / 1_000);
      if (outcome === 'failed') errors.with({ plugin_name: plugin }).inc();
    },
  };
}
