//! Attributes of tests that run on a driver. `curium-tests` re-exports them.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as TokenStream2;
use quote::quote;
use syn::{Expr, ItemFn, parse_macro_input, parse_quote};

/// Declares a test that applies to every driver: a function of `&TestDriver`, which
/// `curium_tests::on_driver` calls.
///
/// `#[driver_test(on_peers)]` and `#[driver_test(on_device(9))]` name another function that calls
/// the test. It receives the test as its last argument and returns the test's result.
#[proc_macro_attribute]
pub fn driver_test(runner: TokenStream, test: TokenStream) -> TokenStream {
    let runner = if runner.is_empty() {
        parse_quote!(::curium_tests::on_driver)
    } else {
        parse_macro_input!(runner as Expr)
    };
    run(&runner, &parse_macro_input!(test as ItemFn)).into()
}

/// Declares a test that applies to the simulator alone: a function of `&TestDriver` and
/// `&Simulator`, which `curium_tests::on_simulator` calls.
///
/// `#[simulator_test(Config::new().with_devices(2))]` configures the simulator.
#[proc_macro_attribute]
pub fn simulator_test(config: TokenStream, test: TokenStream) -> TokenStream {
    let config = if config.is_empty() {
        parse_quote!(::curium_sim::Config::new())
    } else {
        parse_macro_input!(config as Expr)
    };
    let runner = parse_quote!(::curium_tests::on_simulator(#config));
    run(&runner, &parse_macro_input!(test as ItemFn)).into()
}

/// Returns a test that calls `runner` with the function `test`.
fn run(runner: &Expr, test: &ItemFn) -> TokenStream2 {
    let name = &test.sig.ident;
    let attributes = &test.attrs;
    let output = &test.sig.output;
    let parameters = &test.sig.inputs;
    let body = &test.block;
    let call: Expr = match runner {
        Expr::Call(call) => {
            let mut call = call.clone();
            call.args.push(parse_quote!(#name));
            Expr::Call(call)
        }
        function => parse_quote!(#function(#name)),
    };
    quote! {
        #(#attributes)*
        #[test]
        fn #name() #output {
            fn #name(#parameters) #output #body
            #call
        }
    }
}
