//! The block on the host, in `f64` and without any order of summation in common with the kernels.

use crate::kernels::HEAD;
use crate::{Layer, Norm, Parameters, Shape};

/// Returns the output of a block.
pub(crate) fn forward(shape: Shape, parameters: &Parameters<Vec<f32>>, input: &[f32]) -> Vec<f64> {
    let x: Vec<f64> = input.iter().map(|x| f64::from(*x)).collect();
    let qkv = linear(&normalized(&x, &parameters.first_norm), &parameters.qkv);
    let attended = attention(shape, &qkv);
    let h = sum(&x, &linear(&attended, &parameters.out));
    let mut hidden = linear(&normalized(&h, &parameters.second_norm), &parameters.up);
    for x in &mut hidden {
        *x *= 0.5 * (1.0 + (0.797_884_560_802_865_4 * (*x + 0.044_715 * x.powi(3))).tanh());
    }
    sum(&h, &linear(&hidden, &parameters.down))
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn normalized(x: &[f64], norm: &Norm<Vec<f32>>) -> Vec<f64> {
    let width = norm.gain.len();
    let mut y = Vec::with_capacity(x.len());
    for row in x.chunks(width) {
        let mean = row.iter().sum::<f64>() / width as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
        for (i, x) in row.iter().enumerate() {
            let scaled = (x - mean) / (variance + 1e-5).sqrt();
            y.push(scaled * f64::from(norm.gain[i]) + f64::from(norm.bias[i]));
        }
    }
    y
}

fn linear(x: &[f64], layer: &Layer<Vec<f32>>) -> Vec<f64> {
    let mut y = Vec::new();
    for row in x.chunks(layer.inputs) {
        let mut result: Vec<f64> = layer.bias.iter().map(|bias| f64::from(*bias)).collect();
        for (x, weights) in row.iter().zip(layer.weights.chunks(layer.outputs)) {
            for (sum, weight) in result.iter_mut().zip(weights) {
                *sum += x * f64::from(*weight);
            }
        }
        y.extend(result);
    }
    y
}

fn attention(shape: Shape, qkv: &[f64]) -> Vec<f64> {
    let Shape { sequence, width } = shape;
    let part = |row: usize, part: usize, head: usize| {
        &qkv[row * 3 * width + part * width + head * HEAD..][..HEAD]
    };
    let mut out = vec![0.0; sequence * width];
    for head in 0..width / HEAD {
        for row in 0..sequence {
            let score = |key: usize| {
                let products = part(row, 0, head).iter().zip(part(key, 1, head));
                products.map(|(q, k)| q * k).sum::<f64>() / (HEAD as f64).sqrt()
            };
            let weights: Vec<f64> = (0..=row).map(|key| score(key).exp()).collect();
            let total: f64 = weights.iter().sum();
            for (key, weight) in weights.iter().enumerate() {
                let sums = &mut out[row * width + head * HEAD..][..HEAD];
                for (sum, value) in sums.iter_mut().zip(part(key, 2, head)) {
                    *sum += weight / total * value;
                }
            }
        }
    }
    out
}
